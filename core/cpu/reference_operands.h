// Operands of the reference loops. Loops access tensors of f32 and f64 directly and bf16 through
// copies in f32, so one loop per op serves all three types. Used by one thread.
#pragma once

#include <vector>

#include "core/autograd.h"

namespace wisp {

/// A tensor that loops over T read. bf16 is widened into a copy.
template <class T>
class ReferenceSource {
 public:
  explicit ReferenceSource(const Tensor& tensor) {
    if (!tensor.defined()) return;
    if (tensor.dtype() != DType::bf16) {
      data_ = tensor.data<T>();
      return;
    }
    const BFloat16* values = tensor.data<BFloat16>();
    copy_.resize(static_cast<size_t>(tensor.numel()));
    for (size_t i = 0; i < copy_.size(); ++i) copy_[i] = static_cast<T>(wide(values[i]));
    data_ = copy_.data();
  }
  /// A factor of a product. If `like` is bf16, the factor is rounded to bf16, too.
  ReferenceSource(const Tensor& factor, const Tensor& like) : ReferenceSource(factor) {
    if (like.dtype() != DType::bf16 || factor.dtype() == DType::bf16) return;
    copy_.assign(data_, data_ + factor.numel());
    for (T& value : copy_) value = static_cast<T>(wide(BFloat16(static_cast<float>(value))));
    data_ = copy_.data();
  }
  ReferenceSource(const ReferenceSource&) = delete;
  ReferenceSource& operator=(const ReferenceSource&) = delete;
  const T* data() const { return data_; }

 private:
  std::vector<T> copy_;
  const T* data_ = nullptr;
};

/// A result that loops over T write. A bf16 result is a copy that the destructor rounds. Without a
/// tensor in `slot` put() does nothing.
template <class T>
class Target {
 public:
  explicit Target(const GradSlot& slot) : slot_(slot), numel_(slot.into.numel()) {
    if (!slot.into.defined()) return;
    if (slot.into.dtype() != DType::bf16) {
      into_ = slot.into.data<T>();
      return;
    }
    copy_.resize(static_cast<size_t>(numel_));
    into_ = copy_.data();
    if (!slot.accumulate) return;
    for (int64_t i = 0; i < numel_; ++i)
      into_[i] = static_cast<T>(wide(slot.into.data<BFloat16>()[i]));
  }
  ~Target() {
    for (size_t i = 0; i < copy_.size(); ++i)
      store(slot_.into.data<BFloat16>() + i, static_cast<float>(copy_[i]));
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  T* data() const { return into_; }
  void put(int64_t i, T value) const {
    if (into_) into_[i] = slot_.accumulate ? into_[i] + value : value;
  }
  /// Writes zeros unless the slot accumulates, for ops that add contributions in place.
  void zero_unless_accumulating() const {
    if (slot_.accumulate) return;
    for (int64_t i = 0; i < numel_; ++i) into_[i] = 0;
  }

 private:
  GradSlot slot_;
  int64_t numel_;
  std::vector<T> copy_;
  T* into_ = nullptr;
};

}  // namespace wisp
