#include "prelu.h"

#include "core/loops/parallel.h"
#include "core/ops/gradient.h"

namespace wisp::examples {
namespace {

// T is the type of activations: float, double or bf16. Arithmetic is in Wide<T>, float for bf16.
template <class T>
struct Forward {
  const T* x;
  const Wide<T>* slope;
  T* y;
  WISP_HD void operator()(int64_t i) const {
    const Wide<T> value = wide(x[i]);
    store(y + i, value > 0 ? value : *slope * value);
  }
};

template <class T>
struct GradientOfX {
  const T *x, *dy;
  const Wide<T>* slope;
  T* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    deposit(dx + i, wide(x[i]) > 0 ? wide(dy[i]) : *slope * wide(dy[i]), accumulate);
  }
};

template <class T>
struct GradientOfSlope {  // sum over all elements
  using Value = Wide<T>;
  const T *x, *dy;
  WISP_HD Value identity() const { return 0; }
  WISP_HD Value map(int64_t i) const {
    return wide(x[i]) > 0 ? Value(0) : wide(x[i]) * wide(dy[i]);
  }
  WISP_HD Value combine(Value a, Value b) const { return a + b; }
};

template <class T>
void fill_slots(Context& context, const Tensor& x, const Tensor& slope, const Tensor& dy,
                Inputs& in) {
  if (in.wanted(0)) {
    const GradSlot dx = in.slot(0);
    parallel_for(context.stream, x.numel(),
                 GradientOfX<T>{x.data<T>(), dy.data<T>(), slope.data<Wide<T>>(), dx.into.data<T>(),
                                dx.accumulate});
  }
  if (in.wanted(1)) {
    const Tensor sum = context.empty(slope.shape(), slope.dtype());
    parallel_reduce(context.stream, x.numel(), GradientOfSlope<T>{x.data<T>(), dy.data<T>()},
                    sum.data<Wide<T>>());
    deposit(context.stream, sum, in.slot(1));
  }
}

}  // namespace

Variable prelu(const Variable& x, const Variable& slope) {
  WISP_CHECK(slope.shape() == Shape{1}, "prelu: slope is ", slope.shape(), ", expected (1)");
  Context& context = x.context();
  const Tensor y = context.empty(x.shape(), x.value().dtype());
  dispatch_activation(y.dtype(), "prelu", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, y.numel(),
                 Forward<T>{x.value().data<T>(), slope.value().data<Wide<T>>(), y.data<T>()});
  });
  return record("prelu", y, {x, slope},
                [&context, x = x.value(), slope = slope.value()](const Tensor& dy, Inputs& in) {
                  dispatch_activation(dy.dtype(), "prelu", [&](auto zero) {
                    fill_slots<decltype(zero)>(context, x, slope, dy, in);
                  });
                });
}

PRelu::PRelu() : slope_(parameter("slope", {1}, {Init::Kind::constant, 0.25}, /*decay=*/false)) {}

}  // namespace wisp::examples
