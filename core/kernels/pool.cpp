// Pooling windows. An index is a few channels of one output pixel, and sums are in the order of the
// reference's loops.
#include "core/kernels/pool.h"

#include "core/kernels/few.h"
#include "core/loops/divisor.h"
#include "core/loops/parallel.h"
#include "core/loops/unrolled.h"

namespace wisp {
namespace {

/// The extents of a pooling and the positions of its elements. An index has kCount channels of a
/// pixel.
template <int64_t kCount>
struct Grid {
  static constexpr int64_t kTaps = 3;  // taps of a window's row that are read before any is used
  int64_t kernel, pad, channels;
  Divisor stride, height, width, groups, out_height, out_width;

  explicit Grid(const PoolSpec& s)
      : kernel(s.kernel),
        pad(s.pad),
        channels(s.channels),
        stride(s.stride),
        height(s.height),
        width(s.width),
        groups(s.channels / kCount),
        out_height(s.out_height()),
        out_width(s.out_width()) {}

  /// Calls taps(at, n) for the inputs of the window of y's index `out`, row by row. A call covers
  /// element `at` of x and the n - 1 pixels right of it, as in unrolled().
  template <class Taps>
  WISP_HD void window(int64_t out, const Taps& taps) const {
    const Place place(*this, out, out_height, out_width);
    const int64_t top = place.row * stride.value() - pad,
                  left = place.column * stride.value() - pad;
    const Range rows = within(top, height.value()), columns = within(left, width.value());
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t at = element(place, row, columns.begin, height, width);
      unrolled<kTaps>(columns.end - columns.begin,
                      [&](int64_t tap, auto n) { taps(at + tap * channels, n); });
    }
  }

  /// Calls tap(element of y) for each window that contains x's index `in`, row by row.
  template <class Tap>
  WISP_HD void windows_of(int64_t in, const Tap& tap) const {
    const Place place(*this, in, height, width);
    const Range rows = windows(place.row, out_height.value());
    const Range columns = windows(place.column, out_width.value());
    for (int64_t row = rows.begin; row < rows.end; ++row)
      for (int64_t column = columns.begin; column < columns.end; ++column)
        tap(element(place, row, column, out_height, out_width));
  }

 private:
  struct Place {
    int64_t image, row, column, channel;
    WISP_HD Place(const Grid& grid, int64_t i, const Divisor& rows, const Divisor& columns) {
      const int64_t pixel = grid.groups.quotient(i), line = columns.quotient(pixel);
      image = rows.quotient(line);
      row = line - image * rows.value();
      column = pixel - line * columns.value();
      channel = (i - pixel * grid.groups.value()) * kCount;
    }
  };
  struct Range {
    int64_t begin, end;
  };
  WISP_HD int64_t element(const Place& place, int64_t row, int64_t column, const Divisor& rows,
                          const Divisor& columns) const {
    const int64_t line = place.image * rows.value() + row;
    return (line * columns.value() + column) * channels + place.channel;
  }
  /// The part in [0, extent) of a window that begins at `first`.
  WISP_HD Range within(int64_t first, int64_t extent) const {
    const int64_t last = first + kernel;
    return {first < 0 ? 0 : first, last < extent ? last : extent};
  }
  /// The windows, of `count`, that contain `at`.
  WISP_HD Range windows(int64_t at, int64_t count) const {
    const int64_t behind = at + pad - kernel + 1;  // the first one begins here or later
    const int64_t end = stride.quotient(at + pad) + 1;
    return {behind <= 0 ? 0 : stride.quotient(behind + stride.value() - 1),
            end < count ? end : count};
  }
};

template <class T, int64_t kCount>
struct MaxPool {
  static constexpr int kResidentBlocks = 3;
  Grid<kCount> grid;
  const T* x;
  T* y;
  int32_t* argmax;
  WISP_HD void operator()(int64_t out) const {
    Packed<T, kCount> most{};
    Packed<int32_t, kCount> where{};
    bool first = true;
    grid.window(out, [&](int64_t at, auto n) {
      Packed<T, kCount> here[n.value];
      for (int64_t tap = 0; tap < n.value; ++tap)
        here[tap] = Packed<T, kCount>::load(x + at + tap * grid.channels);
      for (int64_t tap = 0; tap < n.value; ++tap) {
        const int64_t in = at + tap * grid.channels;
        for (int64_t k = 0; k < kCount; ++k) {
          const Wide<T> value = wide(here[tap].at[k]);
          const bool not_a_number = value != value;
          if (first || value > wide(most.at[k]) || not_a_number) {
            most.at[k] = here[tap].at[k];
            where.at[k] = static_cast<int32_t>(in + k);
          }
        }
        first = false;
      }
    });
    const int64_t to = out * kCount;
    most.store_to(y + to);
    where.store_to(argmax + to);
  }
};

template <class T, int64_t kCount>
struct MaxPoolGradient {
  static constexpr int kResidentBlocks = 3;
  Grid<kCount> grid;
  const T* dy;
  const int32_t* argmax;
  T* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    const int64_t in = i * kCount;
    Few<T, kCount> sum{};
    grid.windows_of(i, [&](int64_t out) {
      const auto where = Packed<int32_t, kCount>::load(argmax + out);
      const Few<T, kCount> more(dy + out);
      for (int64_t k = 0; k < kCount; ++k)
        if (where.at[k] == in + k) sum[k] += more[k];
    });
    deposit(dx + in, sum, accumulate);
  }
};

template <class T, int64_t kCount>
struct MeanPool {
  static constexpr int kResidentBlocks = 3;
  Grid<kCount> grid;
  const T* x;
  T* y;
  WISP_HD void operator()(int64_t out) const {
    Few<T, kCount> sum{};
    grid.window(out, [&](int64_t at, auto n) {
      Packed<T, kCount> here[n.value];
      for (int64_t tap = 0; tap < n.value; ++tap)
        here[tap] = Packed<T, kCount>::load(x + at + tap * grid.channels);
      for (int64_t tap = 0; tap < n.value; ++tap)
        for (int64_t k = 0; k < kCount; ++k) sum[k] += wide(here[tap].at[k]);
    });
    for (int64_t k = 0; k < kCount; ++k) sum[k] /= static_cast<Wide<T>>(grid.kernel * grid.kernel);
    sum.store_to(y + out * kCount);
  }
};

template <class T, int64_t kCount>
struct MeanPoolGradient {
  static constexpr int kResidentBlocks = 3;
  Grid<kCount> grid;
  const T* dy;
  T* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t in) const {
    Few<T, kCount> sum{};
    grid.windows_of(in, [&](int64_t out) {
      const Few<T, kCount> more(dy + out);
      for (int64_t k = 0; k < kCount; ++k) sum[k] += more[k];
    });
    for (int64_t k = 0; k < kCount; ++k) sum[k] /= static_cast<Wide<T>>(grid.kernel * grid.kernel);
    deposit(dx + in * kCount, sum, accumulate);
  }
};

}  // namespace

void KernelPools::max_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y,
                           Tensor& argmax) {
  dispatch_activation(x.dtype(), "max_pool", [&](auto zero) {
    using T = decltype(zero);
    with_few<T>(spec.channels, {x.raw(), y.raw(), argmax.raw()}, [&](auto count) {
      parallel_for(stream, y.numel() / count(),
                   MaxPool<T, count()>{Grid<count()>(spec), x.data<T>(), y.data<T>(),
                                       argmax.data<int32_t>()},
                   spec.kernel * spec.kernel * count());
    });
  });
}

void KernelPools::max_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                              const Tensor& argmax, GradSlot dx) {
  dispatch_activation(dy.dtype(), "max_pool_dx", [&](auto zero) {
    using T = decltype(zero);
    with_few<T>(spec.channels, {dy.raw(), argmax.raw(), dx.into.raw()}, [&](auto count) {
      parallel_for(
          stream, dx.into.numel() / count(),
          MaxPoolGradient<T, count()>{Grid<count()>(spec), dy.data<T>(), argmax.data<int32_t>(),
                                      dx.into.data<T>(), dx.accumulate},
          count());
    });
  });
}

void KernelPools::avg_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y) {
  dispatch_activation(x.dtype(), "avg_pool", [&](auto zero) {
    using T = decltype(zero);
    with_few<T>(spec.channels, {x.raw(), y.raw()}, [&](auto count) {
      parallel_for(stream, y.numel() / count(),
                   MeanPool<T, count()>{Grid<count()>(spec), x.data<T>(), y.data<T>()},
                   spec.kernel * spec.kernel * count());
    });
  });
}

void KernelPools::avg_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                              GradSlot dx) {
  dispatch_activation(dy.dtype(), "avg_pool_dx", [&](auto zero) {
    using T = decltype(zero);
    with_few<T>(spec.channels, {dy.raw(), dx.into.raw()}, [&](auto count) {
      parallel_for(stream, dx.into.numel() / count(),
                   MeanPoolGradient<T, count()>{Grid<count()>(spec), dy.data<T>(),
                                                dx.into.data<T>(), dx.accumulate},
                   count());
    });
  });
}

}  // namespace wisp
