// Temporary memory for a backend's calls, a library's and our own. Belongs to its stream's thread.
// Whoever destroys it has waited for the calls.
#pragma once

#include "core/device/stream.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// A workspace for all calls of a stream, which run in turn. Only a larger request replaces its
/// memory.
class Workspace {
 public:
  explicit Workspace(MemoryPool& pool) : pool_(pool) {}

  int64_t bytes() const { return memory_.defined() ? memory_.bytes() : 0; }

  /// At least `bytes` bytes, aligned to 256, valid until the next call of of().
  std::byte* of(int64_t bytes) {
    if (this->bytes() < bytes) {
      memory_ = {};
      // a block whose size is a multiple of the alignment is aligned, wherever it is in the pool
      memory_ = Tensor({(bytes + kAlignment - 1) / kAlignment * kAlignment}, DType::u8, pool_,
                       range_.id());
    }
    return memory_.raw();
  }

 private:
  static constexpr int64_t kAlignment = 256;  // required by the libraries

  MemoryPool& pool_;
  // own range of the pool: it begins on a page, and growth leaves no hole among activations
  const Stream range_ = Stream::immediate();
  Tensor memory_;
};

}  // namespace wisp
