#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/parallel.h"

namespace wisp {
namespace {

template <class T>
struct Relu {
  const T* x;
  T* y;
  WISP_HD void operator()(int64_t i) const {
    const Wide<T> value = wide(x[i]);
    store(y + i, value < 0 ? Wide<T>(0) : value);  // keeps NaN
  }
};

template <class T>
struct ReluGradient {
  const T* y;
  const T* dy;
  T* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    deposit(dx + i, wide(y[i]) > 0 ? wide(dy[i]) : Wide<T>(0), accumulate);
  }
};

}  // namespace

Variable relu(const Variable& x) {
  Context& context = x.context();
  const Tensor y = context.empty(x.shape(), x.value().dtype());
  dispatch_activation(y.dtype(), "relu", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, y.numel(), Relu<T>{x.value().data<T>(), y.data<T>()});
  });
  return record("relu", y, {x}, [&context, y](const Tensor& dy, Inputs& in) {
    const GradSlot dx = in.slot(0);
    dispatch_activation(dy.dtype(), "relu", [&](auto zero) {
      using T = decltype(zero);
      parallel_for(context.stream, dy.numel(),
                   ReluGradient<T>{y.data<T>(), dy.data<T>(), dx.into.data<T>(), dx.accumulate});
    });
  });
}

}  // namespace wisp
