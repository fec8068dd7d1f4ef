#include "core/tensor/channel_order.h"

namespace wisp {
namespace {

/// Transposes every matrix (rows, columns) of `from`.
Tensor transposed(const Tensor& from, Shape shape, int64_t rows, int64_t columns) {
  Tensor to(shape, from.dtype());
  dispatch_float(from.dtype(), "channel order", [&]<class T>(T) {
    const T* source = from.data<T>();
    T* target = to.data<T>();
    for (int64_t i = 0; i < from.numel(); ++i) {
      const int64_t matrix = i / (rows * columns);
      const int64_t row = i / columns % rows;
      const int64_t column = i % columns;
      target[(matrix * columns + column) * rows + row] = source[i];
    }
  });
  return to;
}

}  // namespace

Shape channels_first(const Shape& shape) {
  return shape.rank() == 4 ? Shape{shape[0], shape[3], shape[1], shape[2]} : shape;
}

Tensor channels_first(const Tensor& tensor) {
  const Shape& s = tensor.shape();
  if (s.rank() != 4) return tensor;
  return transposed(tensor, channels_first(s), s[1] * s[2], s[3]);
}

Tensor channels_last(const Tensor& tensor) {
  const Shape& s = tensor.shape();
  if (s.rank() != 4) return tensor;
  return transposed(tensor, {s[0], s[2], s[3], s[1]}, s[1], s[2] * s[3]);
}

}  // namespace wisp
