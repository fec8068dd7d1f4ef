// Data only: a contiguous, typed view of shared storage. Cheap to copy, never part of a graph. Two
// threads may use one storage through different tensors as long as they keep to different elements
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
  /// Uninitialised memory of a pool, for work on the stream with that id.
  Tensor(Shape shape, DType dtype, MemoryPool& pool, int64_t stream_id);
  /// A view of the host's `memory`, which holds as much.
  Tensor(Shape shape, DType dtype, std::shared_ptr<std::byte> memory);

  bool defined() const { return storage_ != nullptr; }
  /// Whether this tensor is all of its storage, and no other has any of it.
  bool sole_owner() const { return storage_.use_count() == 1 && bytes() == storage_->bytes(); }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_ ? storage_->device() : Device{}; }
  int64_t numel() const { return shape_.numel(); }
  int64_t bytes() const { return numel() * size_of(dtype_); }

  template <class T>
  T* data() const {
    assert(dtype_of<T>::value == dtype_);
    return reinterpret_cast<T*>(raw());
  }
  /// All bytes of a host tensor zero, at once.
  void clear() const;
  std::byte* raw() const { return storage_ ? storage_->data() + byte_offset_ : nullptr; }

  /// The same elements in another shape. Throws Error if the counts differ.
  Tensor reshape(Shape shape) const;
  /// The same bytes as other elements. Throws Error if they are not as many.
  Tensor reinterpreted(Shape shape, DType dtype) const;
  /// Rows [begin, end) of the first extent.
  Tensor rows(int64_t begin, int64_t end) const;
  /// The storage's memory as another tensor, from its beginning on; a zeroed host tensor with
  /// storage of its own if it holds less.
  Tensor fitted(Shape shape, DType dtype) const;
  /// `shape.numel()` elements from element `offset` on.
  Tensor slice(int64_t offset, Shape shape) const;

 private:
  std::shared_ptr<Storage> storage_;
  int64_t byte_offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
};

}  // namespace wisp
