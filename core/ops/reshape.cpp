#include <algorithm>

#include "core/loops/divisor.h"
#include "core/loops/parallel_row_parts.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// Transposes matrices (rows, columns) of `from`. A row is one of the result.
template <class T>
struct TransposeRows {
  struct Shared {};
  const T* from;
  T* into;
  int64_t rows;
  Divisor columns;
  bool accumulate;
  WISP_HD void operator()(const auto& team, int64_t row, int64_t begin, int64_t end,
                          Shared&) const {
    const int64_t matrix = columns.quotient(row), width = columns.value();
    const T* in = from + (matrix * rows + begin) * width + columns.remainder(row);
    T* out = into + row * rows + begin;
    team.each(end - begin, [&](int64_t i) { deposit(out + i, wide(in[i * width]), accumulate); });
  }
};

void transpose(const Stream& stream, const Tensor& from, int64_t rows, int64_t columns,
               const GradSlot& into) {
  dispatch_activation(from.dtype(), "flatten", [&]<class T>(T) {
    parallel_row_parts(stream, from.numel() / std::max<int64_t>(rows, 1), rows,
                       TransposeRows<T>{from.data<T>(), into.into.data<T>(), rows, Divisor(columns),
                                        into.accumulate});
  });
}

}  // namespace

Variable reshape(const Variable& x, Shape shape) {
  Context& context = x.context();
  return record("reshape", x.value().reshape(shape), {x}, [&context](const Tensor& dy, Inputs& in) {
    deposit(context.stream, dy, in.slot(0));
  });
}

Variable flatten(const Variable& x) {
  Context& context = x.context();
  const Shape& shape = x.shape();
  WISP_CHECK(shape.rank() == 4, "flatten: input is ", shape, ", expected (N, H, W, C)");
  const int64_t positions = shape[1] * shape[2], channels = shape[3];
  const Tensor y = context.empty({shape[0], channels * positions}, x.value().dtype());
  transpose(context.stream, x.value(), positions, channels, {y});
  return record("flatten", y, {x}, [&context, positions, channels](const Tensor& dy, Inputs& in) {
    transpose(context.stream, dy, channels, positions, in.slot(0));
  });
}

}  // namespace wisp
