// A contiguous, typed view of shared storage. It is data only, never part of a graph, and cheap to
// copy. Two threads may use one storage through different tensors if they use different elements,
// or order themselves by events.
#pragma once

#include <cassert>
#include <memory>

#include "core/device/storage.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace wisp {

class Tensor {
 public:
  Tensor() = default;  // undefined: no storage
  /// A zeroed host tensor with storage of its own.
  Tensor(Shape shape, DType dtype);
  /// Uninitialised memory of a pool, for work on `stream`.
  Tensor(Shape shape, DType dtype, MemoryPool& pool, const StreamId& stream);
  /// A view of `memory` on the host, which must hold the shape's bytes.
  Tensor(Shape shape, DType dtype, std::shared_ptr<std::byte> memory);

  bool defined() const { return storage_ != nullptr; }
  /// Whether this tensor is all of its storage, and no other tensor shares it.
  bool sole_owner() const { return storage_.use_count() == 1 && bytes() == storage_->bytes(); }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_ ? storage_->device() : Device{}; }
  int64_t numel() const { return shape_.numel(); }
  int64_t bytes() const { return numel() * size_of(dtype_); }

  /// The elements; null if the tensor is undefined.
  template <class T>
  T* data() const {
    assert(!defined() || dtype_of<T>::value == dtype_);
    return reinterpret_cast<T*>(raw());
  }
  /// Sets all bytes of a host tensor to zero, at once.
  void clear() const;
  std::byte* raw() const { return storage_ ? storage_->data() + byte_offset_ : nullptr; }

  /// The same elements in another shape. Throws Error if the counts differ.
  Tensor reshape(Shape shape) const;
  /// The same bytes as elements of another type. Throws Error if the sizes in bytes differ.
  Tensor reinterpreted(Shape shape, DType dtype) const;
  /// Rows [begin, end) of the first extent, in the same storage.
  Tensor rows(int64_t begin, int64_t end) const;
  /// A tensor at the beginning of the same storage, or a new zeroed host tensor if the storage is
  /// too small.
  Tensor fitted(Shape shape, DType dtype) const;
  /// `shape.numel()` elements from element `offset` on, in the same storage.
  Tensor slice(int64_t offset, Shape shape) const;

 private:
  Tensor view(int64_t byte_offset, Shape shape, DType dtype) const;

  std::shared_ptr<Storage> storage_;
  int64_t byte_offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
};

}  // namespace wisp
