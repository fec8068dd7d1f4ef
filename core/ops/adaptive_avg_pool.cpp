#include "core/loops/parallel_row_parts.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

struct Range {
  int64_t begin, end;
  WISP_HD int64_t count() const { return end - begin; }
};

/// An axis of `in` positions under `out` windows. Window i has the positions from floor(i in / out)
/// to ceil((i + 1) in / out). The windows over a position are found by the same formula with in and
/// out exchanged.
struct PooledAxis {
  Divisor in, out;

  WISP_HD Range window(int64_t i) const { return range(i, in.value(), out); }
  WISP_HD Range windows_over(int64_t position) const { return range(position, out.value(), in); }

 private:
  WISP_HD static Range range(int64_t i, int64_t extent, const Divisor& parts) {
    return {parts.quotient(i * extent), parts.quotient((i + 1) * extent + parts.value() - 1)};
  }
};

struct PoolGeometry {
  PooledAxis height, width;
  int64_t channels;
};

/// The forward pass. A row is a position of the output.
template <class T>
struct WindowMeans {
  struct Shared {};
  const T* x;
  T* y;
  PoolGeometry g;
  WISP_HD void operator()(const auto& team, int64_t position, int64_t begin, int64_t end,
                          Shared&) const {
    const int64_t line = g.width.out.quotient(position), image = g.height.out.quotient(line);
    const Range rows = g.height.window(g.height.out.remainder(line));
    const Range columns = g.width.window(g.width.out.remainder(position));
    const int64_t height = g.height.in.value(), width = g.width.in.value();
    const T* from = x + image * height * width * g.channels + begin;
    T* to = y + position * g.channels + begin;
    team.each(end - begin, [&](int64_t c) {
      Wide<T> sum = 0;
      for (int64_t row = rows.begin; row < rows.end; ++row)
        for (int64_t column = columns.begin; column < columns.end; ++column)
          sum += wide(from[(row * width + column) * g.channels + c]);
      store(to + c, sum / static_cast<Wide<T>>(rows.count() * columns.count()));
    });
  }
};

/// The gradient. A row is a position of the input.
template <class T>
struct WindowMeansGradient {
  struct Shared {};
  const T* dy;
  T* dx;
  PoolGeometry g;
  bool accumulate;
  WISP_HD void operator()(const auto& team, int64_t position, int64_t begin, int64_t end,
                          Shared&) const {
    const int64_t line = g.width.in.quotient(position), image = g.height.in.quotient(line);
    const Range rows = g.height.windows_over(g.height.in.remainder(line));
    const Range columns = g.width.windows_over(g.width.in.remainder(position));
    const int64_t height = g.height.out.value(), width = g.width.out.value();
    const T* from = dy + image * height * width * g.channels + begin;
    T* to = dx + position * g.channels + begin;
    team.each(end - begin, [&](int64_t c) {
      Wide<T> sum = 0;
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const int64_t high = g.height.window(row).count();
        for (int64_t column = columns.begin; column < columns.end; ++column)
          sum += wide(from[(row * width + column) * g.channels + c]) /
                 static_cast<Wide<T>>(high * g.width.window(column).count());
      }
      deposit(to + c, sum, accumulate);
    });
  }
};

}  // namespace

Variable adaptive_avg_pool(const Variable& x, Axes size) {
  Context& context = x.context();
  const Shape& shape = x.shape();
  WISP_CHECK(shape.rank() == 4 && shape[1] * shape[2] * shape[3] > 0,
             "adaptive_avg_pool: input is ", shape,
             ", expected (N, H, W, C) with at least one position and channel");
  WISP_CHECK(size.h > 0 && size.w > 0, "adaptive_avg_pool: to ", size,
             " positions, expected positive numbers");
  if (Axes(shape[1], shape[2]) == size) return x;
  const PoolGeometry geometry{
      {Divisor(shape[1]), Divisor(size.h)}, {Divisor(shape[2]), Divisor(size.w)}, shape[3]};
  const Tensor y = context.empty({shape[0], size.h, size.w, shape[3]}, x.value().dtype());
  dispatch_activation(y.dtype(), "adaptive_avg_pool", [&]<class T>(T) {
    parallel_row_parts(context.stream, y.shape().rows(), geometry.channels,
                       WindowMeans<T>{x.value().data<T>(), y.data<T>(), geometry});
  });
  return record("adaptive_avg_pool", y, {x}, [&context, geometry](const Tensor& dy, Inputs& in) {
    const GradSlot dx = in.slot(0);
    dispatch_activation(dy.dtype(), "adaptive_avg_pool", [&]<class T>(T) {
      parallel_row_parts(
          context.stream, dx.into.shape().rows(), geometry.channels,
          WindowMeansGradient<T>{dy.data<T>(), dx.into.data<T>(), geometry, dx.accumulate});
    });
  });
}

}  // namespace wisp
