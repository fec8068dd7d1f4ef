#include "core/tensor/tensor.h"

#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace wisp {

Tensor::Tensor(Shape shape, DType dtype)
    : storage_(std::make_shared<Storage>(shape.numel() * size_of(dtype))),
      shape_(shape),
      dtype_(dtype) {}

Tensor::Tensor(Shape shape, DType dtype, MemoryPool& pool, const StreamId& stream)
    : storage_(std::make_shared<Storage>(pool, shape.numel() * size_of(dtype), stream)),
      shape_(shape),
      dtype_(dtype) {}

Tensor::Tensor(Shape shape, DType dtype, std::shared_ptr<std::byte> memory)
    : storage_(std::make_shared<Storage>(std::move(memory), shape.numel() * size_of(dtype))),
      shape_(shape),
      dtype_(dtype) {}

void Tensor::clear() const {
  WISP_CHECK(!device().is_cuda(), "clear: a tensor on ", device().str(),
             ", which its streams have to clear");
  if (bytes() > 0) std::memset(raw(), 0, static_cast<size_t>(bytes()));
}

Tensor Tensor::view(int64_t byte_offset, Shape shape, DType dtype) const {
  Tensor view = *this;
  view.byte_offset_ = byte_offset;
  view.shape_ = shape;
  view.dtype_ = dtype;
  return view;
}

Tensor Tensor::reshape(Shape shape) const {
  WISP_CHECK(shape.numel() == numel(), "reshape: ", shape_, " has ", numel(), " elements, ", shape,
             " has ", shape.numel());
  return view(byte_offset_, shape, dtype_);
}

Tensor Tensor::reinterpreted(Shape shape, DType dtype) const {
  WISP_CHECK(shape.numel() * size_of(dtype) == bytes(), "reinterpreted: ", bytes(), " bytes, not ",
             shape, " of ", name_of(dtype));
  return view(byte_offset_, shape, dtype);
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  WISP_CHECK(shape_.rank() > 0 && 0 <= begin && begin <= end && end <= shape_[0], "rows: [", begin,
             ", ", end, ") of a tensor of shape ", shape_);
  const int64_t row = shape_[0] ? numel() / shape_[0] : 0;
  return slice(begin * row, shape_.with_rows(end - begin));
}

Tensor Tensor::fitted(Shape shape, DType dtype) const {
  if (!storage_ || storage_->bytes() < shape.numel() * size_of(dtype)) return {shape, dtype};
  return view(0, shape, dtype);
}

Tensor Tensor::slice(int64_t offset, Shape shape) const {
  WISP_CHECK(offset >= 0 && offset + shape.numel() <= numel(), "slice: ", shape, " from element ",
             offset, " on leaves a tensor of ", numel(), " elements");
  return view(byte_offset_ + offset * size_of(dtype_), shape, dtype_);
}

}  // namespace wisp
