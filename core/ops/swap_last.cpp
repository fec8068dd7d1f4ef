#include <span>
#include <utility>
#include <vector>

#include "core/loops/parallel_small_teams.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// Transposes matrices (rows, columns) of `from`. An item is a matrix.
template <class T>
struct Transpose {
  struct Shared {};
  const T* from;
  T* into;
  int64_t rows, columns;
  bool accumulate;
  WISP_HD void operator()(const auto& team, int64_t matrix, Shared&) const {
    const T* in = from + matrix * rows * columns;
    T* out = into + matrix * rows * columns;
    for (int64_t c = 0; c < columns; ++c)
      team.each(rows, [&](int64_t r) {
        deposit(out + c * rows + r, wide(in[r * columns + c]), accumulate);
      });
  }
};

void transpose(const Stream& stream, const Tensor& from, const GradSlot& into) {
  const int64_t rows = from.shape()[-2], columns = from.shape()[-1];
  dispatch_activation(from.dtype(), "swap_last", [&]<class T>(T) {
    parallel_small_teams(
        stream, from.numel() / (rows * columns),
        Transpose<T>{from.data<T>(), into.into.data<T>(), rows, columns, into.accumulate},
        rows * columns);
  });
}

}  // namespace

Variable swap_last(const Variable& x) {
  Context& context = x.context();
  const Shape& shape = x.shape();
  WISP_CHECK(shape.rank() >= 2 && shape.numel() > 0, "swap_last: the input is ", shape,
             ", expected (..., A, B)");
  std::vector<int64_t> extents(shape.begin(), shape.end());
  std::swap(extents[extents.size() - 1], extents[extents.size() - 2]);
  const Tensor y = context.empty(Shape(std::span<const int64_t>(extents)), x.value().dtype());
  transpose(context.stream, x.value(), {y});
  return record("swap_last", y, {x}, [&context](const Tensor& dy, Inputs& in) {
    transpose(context.stream, dy, in.slot(0));
  });
}

}  // namespace wisp
