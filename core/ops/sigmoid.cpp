#include "core/elementary.h"
#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/parallel.h"

namespace wisp {
namespace {

template <class T>
struct Sigmoid {
  const T* x;
  T* y;
  WISP_HD void operator()(int64_t i) const { store(y + i, sigmoid(wide(x[i]))); }
};

template <class T>
struct SigmoidGradient {
  const T* y;
  const T* dy;
  T* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    const Wide<T> value = wide(y[i]);
    deposit(dx + i, value * (Wide<T>(1) - value) * wide(dy[i]), accumulate);
  }
};

}  // namespace

Variable sigmoid(const Variable& x) {
  Context& context = x.context();
  const Tensor y = context.empty(x.shape(), x.value().dtype());
  dispatch_activation(y.dtype(), "sigmoid", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, y.numel(), Sigmoid<T>{x.value().data<T>(), y.data<T>()});
  });
  return record("sigmoid", y, {x}, [&context, y](const Tensor& dy, Inputs& in) {
    const GradSlot dx = in.slot(0);
    dispatch_activation(dy.dtype(), "sigmoid", [&](auto zero) {
      using T = decltype(zero);
      parallel_for(context.stream, dy.numel(),
                   SigmoidGradient<T>{y.data<T>(), dy.data<T>(), dx.into.data<T>(), dx.accumulate});
    });
  });
}

}  // namespace wisp
