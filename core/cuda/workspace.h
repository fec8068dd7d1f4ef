// Memory for what a library's call keeps while it runs. Belongs to its stream's thread.
#pragma once

#include "core/device/stream.h"
#include "core/tensor/tensor.h"

namespace wisp::cuda {

/// One for all calls of a stream, which run one after the other: kept, and replaced only by a
/// larger one.
class Workspace {
 public:
  explicit Workspace(MemoryPool& pool) : pool_(pool) {}

  int64_t bytes() const { return memory_.defined() ? memory_.bytes() : 0; }

  /// At least that many bytes, aligned to 256, until the next call of this.
  std::byte* of(int64_t bytes) {
    if (this->bytes() < bytes) {
      memory_ = {};
      // a block of a multiple of that begins at one, wherever the pool puts it
      memory_ =
          Tensor({(bytes + kAlignment - 1) / kAlignment * kAlignment}, DType::u8, pool_, range_);
    }
    return memory_.raw();
  }

 private:
  static constexpr int64_t kAlignment = 256;  // what the libraries ask for

  MemoryPool& pool_;
  // a range of the pool for itself: it begins on a page, and growing leaves no hole among the
  // activations
  const int64_t range_ = Stream::immediate().id();
  Tensor memory_;
};

}  // namespace wisp::cuda
