// Many ranges of one index space, for loops that treat them all at once
// (core/loops/parallel_ranges.h).
#pragma once

#include <span>

#include "core/context.h"

namespace wisp {

/// Ranges as a device reads them, with room for partial results of `value_bytes` each. Belongs to
/// the stream of its context.
class Ranges {
 public:
  /// A range of an index space, and where its result goes.
  struct Range {
    int64_t begin = 0, numel = 0;
    int64_t slot = 0;
    int64_t first_block = 0;  // of parallel::reduce_block(numel) elements: Ranges sets it
  };

  Ranges(const Context& context, std::span<const Range> ranges, int64_t value_bytes);

  int64_t count() const { return count_; }
  int64_t blocks() const { return blocks_; }
  const Range* table() const { return reinterpret_cast<const Range*>(table_.raw()); }
  std::byte* partial() const { return partial_.raw(); }

 private:
  int64_t count_, blocks_ = 0;
  Tensor table_, partial_;
};

}  // namespace wisp
