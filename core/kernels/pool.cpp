// Pooling windows: an index per element of what is written, which adds up in the order of the
// reference's loops.
#include "core/kernels/kernel_backend.h"
#include "core/loops/divisor.h"
#include "core/loops/parallel.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// The extents of a pooling, and where its elements lie.
struct Grid {
  int64_t kernel, stride, pad;
  Divisor height, width, channels, out_height, out_width;

  explicit Grid(const PoolSpec& s)
      : kernel(s.kernel),
        stride(s.stride),
        pad(s.pad),
        height(s.height),
        width(s.width),
        channels(s.channels),
        out_height(s.out_height()),
        out_width(s.out_width()) {}

  /// Calls tap(position in x) for each input of the window of y's element `out`, row by row.
  template <class Tap>
  WISP_HD void window(int64_t out, const Tap& tap) const {
    const Place at = place(out, out_height, out_width);
    for (int64_t i = 0; i < kernel; ++i) {
      const int64_t h = at.row * stride - pad + i;
      if (h < 0 || h >= height.value()) continue;
      for (int64_t j = 0; j < kernel; ++j) {
        const int64_t w = at.column * stride - pad + j;
        if (w < 0 || w >= width.value()) continue;
        tap(((at.image * height.value() + h) * width.value() + w) * channels.value() + at.channel);
      }
    }
  }

  /// Calls tap(position in y) for each window that x's element `in` is in, row by row.
  template <class Tap>
  WISP_HD void windows_of(int64_t in, const Tap& tap) const {
    const Place at = place(in, height, width);
    const int64_t rows = out_height.value(), columns = out_width.value();
    for (int64_t row = first(at.row); row <= last(at.row, rows); ++row)
      for (int64_t column = first(at.column); column <= last(at.column, columns); ++column)
        tap(((at.image * rows + row) * columns + column) * channels.value() + at.channel);
  }

 private:
  struct Place {
    int64_t image, row, column, channel;
  };
  WISP_HD Place place(int64_t i, const Divisor& rows, const Divisor& columns) const {
    const int64_t pixel = channels.quotient(i), line = columns.quotient(pixel);
    return {rows.quotient(line), rows.remainder(line), columns.remainder(pixel),
            channels.remainder(i)};
  }
  WISP_HD int64_t first(int64_t at) const {
    const int64_t behind = at + pad - kernel + 1;  // the first window begins here or later
    return behind <= 0 ? 0 : (behind + stride - 1) / stride;
  }
  WISP_HD int64_t last(int64_t at, int64_t windows) const {
    const int64_t window = (at + pad) / stride;
    return window < windows ? window : windows - 1;
  }
};

template <class T>
struct MaxPool {
  Grid grid;
  const T* x;
  T* y;
  int32_t* argmax;
  WISP_HD void operator()(int64_t out) const {
    int64_t best = -1;
    grid.window(out, [&](int64_t in) {
      const Wide<T> value = wide(x[in]);
      const bool not_a_number = value != value;
      if (best < 0 || value > wide(x[best]) || not_a_number) best = in;
    });
    y[out] = x[best];
    argmax[out] = static_cast<int32_t>(best);
  }
};

template <class T>
struct MaxPoolGradient {
  Grid grid;
  const T* dy;
  const int32_t* argmax;
  T* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t in) const {
    Wide<T> sum = 0;
    grid.windows_of(in, [&](int64_t out) {
      if (argmax[out] == in) sum += wide(dy[out]);
    });
    deposit(dx + in, sum, accumulate);
  }
};

template <class T>
struct MeanPool {
  Grid grid;
  const T* x;
  T* y;
  WISP_HD void operator()(int64_t out) const {
    Wide<T> sum = 0;
    grid.window(out, [&](int64_t in) { sum += wide(x[in]); });
    store(y + out, sum / static_cast<Wide<T>>(grid.kernel * grid.kernel));
  }
};

template <class T>
struct MeanPoolGradient {
  Grid grid;
  const T* dy;
  T* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t in) const {
    Wide<T> sum = 0;
    grid.windows_of(in, [&](int64_t out) { sum += wide(dy[out]); });
    deposit(dx + in, sum / static_cast<Wide<T>>(grid.kernel * grid.kernel), accumulate);
  }
};

}  // namespace

void KernelBackend::max_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y,
                             Tensor& argmax) {
  dispatch_activation(x.dtype(), "max_pool", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, y.numel(),
                 MaxPool<T>{Grid(spec), x.data<T>(), y.data<T>(), argmax.data<int32_t>()},
                 spec.kernel * spec.kernel);
  });
}

void KernelBackend::max_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                                const Tensor& argmax, GradSlot dx) {
  dispatch_activation(dy.dtype(), "max_pool_dx", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, dx.into.numel(),
                 MaxPoolGradient<T>{Grid(spec), dy.data<T>(), argmax.data<int32_t>(),
                                    dx.into.data<T>(), dx.accumulate});
  });
}

void KernelBackend::avg_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x,
                             Tensor& y) {
  dispatch_activation(x.dtype(), "avg_pool", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, y.numel(), MeanPool<T>{Grid(spec), x.data<T>(), y.data<T>()},
                 spec.kernel * spec.kernel);
  });
}

void KernelBackend::avg_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                                GradSlot dx) {
  dispatch_activation(dy.dtype(), "avg_pool_dx", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, dx.into.numel(),
                 MeanPoolGradient<T>{Grid(spec), dy.data<T>(), dx.into.data<T>(), dx.accumulate});
  });
}

}  // namespace wisp
