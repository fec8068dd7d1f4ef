#include "core/loops/divisor.h"
#include "core/loops/parallel.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// Transposes matrices (rows, columns). An index is an element of the result.
template <class T>
struct TransposeEach {
  const T* from;
  T* into;
  Divisor rows, columns;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    const int64_t line = rows.quotient(i), matrix = columns.quotient(line);
    const int64_t row = i - line * rows.value(), column = line - matrix * columns.value();
    const int64_t at = (matrix * rows.value() + row) * columns.value() + column;
    deposit(into + i, wide(from[at]), accumulate);
  }
};

void transpose(const Stream& stream, const Tensor& from, int64_t rows, int64_t columns,
               const GradSlot& into) {
  dispatch_activation(from.dtype(), "flatten", [&]<class T>(T) {
    parallel_for(stream, from.numel(),
                 TransposeEach<T>{from.data<T>(), into.into.data<T>(), Divisor(rows),
                                  Divisor(columns), into.accumulate});
  });
}

}  // namespace

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
