#include "core/elementary.h"
#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/parallel.h"

namespace wisp {
namespace {

template <class T>
struct Tanh {
  const T* x;
  T* y;
  WISP_HD void operator()(int64_t i) const { store(y + i, tangent(wide(x[i]))); }
};

template <class T>
struct TanhGradient {
  const T* y;
  const T* dy;
  T* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    const Wide<T> value = wide(y[i]);
    deposit(dx + i, (Wide<T>(1) - value * value) * wide(dy[i]), accumulate);
  }
};

}  // namespace

Variable tanh(const Variable& x) {
  Context& context = x.context();
  const Tensor y = context.empty(x.shape(), x.value().dtype());
  dispatch_activation(y.dtype(), "tanh", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, y.numel(), Tanh<T>{x.value().data<T>(), y.data<T>()});
  });
  return record("tanh", y, {x}, [&context, y](const Tensor& dy, Inputs& in) {
    const GradSlot dx = in.slot(0);
    dispatch_activation(dy.dtype(), "tanh", [&](auto zero) {
      using T = decltype(zero);
      parallel_for(context.stream, dy.numel(),
                   TanhGradient<T>{y.data<T>(), dy.data<T>(), dx.into.data<T>(), dx.accumulate});
    });
  });
}

}  // namespace wisp
