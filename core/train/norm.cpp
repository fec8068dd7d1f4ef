#include "core/train/norm.h"

#include "core/loops/device_table.h"
#include "core/loops/parallel_ranges.h"
#include "core/loops/parallel_teams.h"

namespace wisp {
namespace {

template <class T>
struct SumOfSquares {
  using Value = double;
  const T* x;
  WISP_HD double identity() const { return 0.0; }
  WISP_HD double map(int64_t i) const {
    return static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  WISP_HD double combine(double a, double b) const { return a + b; }
};

template <class T>
struct Scale {
  T* x;
  T factor;
  WISP_HD void operator()(int64_t i) const { x[i] *= factor; }
};

/// Each team scales one block of a range.
template <class T>
struct ScaleRanges {
  struct Shared {};
  T* x;
  const Ranges::Range* ranges;
  int64_t count;
  const double* factors;
  int64_t squared;
  WISP_HD void operator()(const Team& team, int64_t block, Shared&) const {
    const Ranges::Range& range =
        ranges[row_of(block, count, [&](int64_t at) { return ranges[at].first_block; })];
    const double factor = factors[range.slot];
    if (factor == 1.0) return;
    const int64_t size = parallel::reduce_block(range.numel);
    const int64_t from = (block - range.first_block) * size;
    const int64_t left = range.numel - from;
    team.each(
        left < size ? left : size,
        Scale<T>{x + range.begin + from, static_cast<T>(squared != 0 ? factor * factor : factor)});
  }
};

template <class T>
struct Zero {
  T* x;
  WISP_HD void operator()(int64_t i) const { x[i] = T(0); }
};

}  // namespace

void sums_of_squares(const Stream& stream, const Tensor& x, const Ranges& ranges, double* out) {
  dispatch_float(x.dtype(), "sums_of_squares", [&]<class T>(T) {
    parallel_reduce_ranges(stream, ranges, SumOfSquares<T>{x.data<T>()}, out);
  });
}

void scale(const Stream& stream, const Tensor& x, const Ranges& ranges, const double* factors,
           bool squared) {
  dispatch_float(x.dtype(), "scale", [&]<class T>(T) {
    parallel_teams(
        stream, ranges.blocks(),
        ScaleRanges<T>{x.data<T>(), ranges.table(), ranges.count(), factors, squared ? 1 : 0},
        parallel::reduce_block(1));
  });
}

void scale(const Stream& stream, const Tensor& x, double factor) {
  dispatch_float(x.dtype(), "scale", [&]<class T>(T) {
    parallel_for(stream, x.numel(), Scale<T>{x.data<T>(), static_cast<T>(factor)});
  });
}

void fill_zero(const Stream& stream, const Tensor& x) {
  dispatch_float(x.dtype(), "fill_zero",
                 [&]<class T>(T) { parallel_for(stream, x.numel(), Zero<T>{x.data<T>()}); });
}

}  // namespace wisp
