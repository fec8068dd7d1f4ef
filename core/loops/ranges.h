// A table of many ranges of one index space, for loops that process all of them at once
// (core/loops/parallel_ranges.h). One thread.
#pragma once

#include <span>

#include "core/device/stream.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// Ranges in device memory, with room for partial results of `value_bytes` each. Belongs to its
/// stream.
class Ranges {
 public:
  /// A range of an index space, and the slot of its result.
  struct Range {
    int64_t begin = 0, numel = 0;
    int64_t slot = 0;
    int64_t first_block = 0;  // first block of reduce_block(numel) elements; Ranges sets it
  };

  Ranges(const Stream& stream, MemoryPool& pool, std::span<const Range> ranges,
         int64_t value_bytes);

  int64_t count() const { return count_; }
  int64_t blocks() const { return blocks_; }
  const Range* table() const { return reinterpret_cast<const Range*>(table_.raw()); }
  std::byte* partial() const { return partial_.raw(); }

 private:
  int64_t count_, blocks_ = 0;
  Tensor table_, partial_;
};

}  // namespace wisp
