#include "core/elementary.h"
#include "core/loops/parallel.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

// The functions: f(x), and the gradient of x computed from y = f(x) and dy.

struct Relu {
  WISP_HD auto of(auto x) const { return x < 0 ? 0 : x; }  // keeps NaN
  WISP_HD auto gradient(auto y, auto dy) const { return y > 0 ? dy : 0; }
};

struct ClippedRelu {
  double bound;
  WISP_HD auto of(auto x) const {
    const auto most = static_cast<decltype(x)>(bound);
    return x < 0 ? 0 : x > most ? most : x;
  }
  WISP_HD auto gradient(auto y, auto dy) const {
    return y > 0 && y < static_cast<decltype(y)>(bound) ? dy : 0;
  }
};

struct Sigmoid {
  WISP_HD auto of(auto x) const { return sigmoid(x); }
  WISP_HD auto gradient(auto y, auto dy) const { return y * (1 - y) * dy; }
};

struct Tanh {
  WISP_HD auto of(auto x) const { return tangent(x); }
  WISP_HD auto gradient(auto y, auto dy) const { return (1 - y * y) * dy; }
};

template <class F, class T>
struct Apply {
  F f;
  const T* x;
  T* y;
  WISP_HD void operator()(int64_t i) const { store(y + i, f.of(wide(x[i]))); }
};

template <class F, class T>
struct ApplyGradient {
  F f;
  const T* y;
  const T* dy;
  T* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    deposit(dx + i, f.gradient(wide(y[i]), wide(dy[i])), accumulate);
  }
};

template <class F>
Variable activation(const char* name, const Variable& x, F f = {},
                    std::initializer_list<OpAttribute> attributes = {}) {
  Context& context = x.context();
  const Tensor y = context.empty(x.shape(), x.value().dtype());
  dispatch_activation(y.dtype(), name, [&]<class T>(T) {
    parallel_for(context.stream, y.numel(), Apply<F, T>{f, x.value().data<T>(), y.data<T>()});
  });
  return record(
      name, y, {x},
      [&context, y, name, f](const Tensor& dy, Inputs& in) {
        const GradSlot dx = in.slot(0);
        dispatch_activation(dy.dtype(), name, [&]<class T>(T) {
          parallel_for(
              context.stream, dy.numel(),
              ApplyGradient<F, T>{f, y.data<T>(), dy.data<T>(), dx.into.data<T>(), dx.accumulate});
        });
      },
      attributes);
}

}  // namespace

Variable relu(const Variable& x) { return activation<Relu>("relu", x); }
Variable clipped_relu(const Variable& x, double bound) {
  WISP_CHECK(bound > 0.0, "clipped_relu: the bound is ", bound, ", expected a positive number");
  return activation<ClippedRelu>("clipped_relu", x, {bound}, {{"bound", bound}});
}
Variable sigmoid(const Variable& x) { return activation<Sigmoid>("sigmoid", x); }
Variable tanh(const Variable& x) { return activation<Tanh>("tanh", x); }

}  // namespace wisp
