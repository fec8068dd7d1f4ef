#include "core/train/norm.h"

#include "core/loops/parallel_ranges.h"

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

template <class T>
struct Zero {
  T* x;
  WISP_HD void operator()(int64_t i) const { x[i] = T(0); }
};

}  // namespace

void sums_of_squares(const Stream& stream, const Tensor& x, const Ranges& ranges, double* out) {
  dispatch_float(x.dtype(), "sums_of_squares", [&](auto zero) {
    using T = decltype(zero);
    parallel_reduce_ranges(stream, ranges, SumOfSquares<T>{x.data<T>()}, out);
  });
}

void scale(const Stream& stream, const Tensor& x, double factor) {
  dispatch_float(x.dtype(), "scale", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, x.numel(), Scale<T>{x.data<T>(), static_cast<T>(factor)});
  });
}

void fill_zero(const Stream& stream, const Tensor& x) {
  dispatch_float(x.dtype(), "fill_zero", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, x.numel(), Zero<T>{x.data<T>()});
  });
}

}  // namespace wisp
