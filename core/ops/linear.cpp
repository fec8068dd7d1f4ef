#include "core/backend.h"
#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/parallel.h"

namespace wisp {
namespace {

/// One index per row.
template <class T>
struct AddToRows {
  const Wide<T>* bias;
  T* y;
  int64_t columns;
  WISP_HD void operator()(int64_t row) const {
    T* out = y + row * columns;
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) store(out + c, wide(out[c]) + bias[c]);
  }
};

constexpr int kColumnGroup = 16;  // columns summed side by side: whole cache lines, whole vectors

/// One index per group of columns.
template <class T>
struct SumOfRows {
  const T* dy;
  Wide<T>* sum;
  int64_t rows, columns;
  bool accumulate;
  WISP_HD void operator()(int64_t group) const {
    const int64_t first = group * kColumnGroup;
    const int64_t rest = columns - first;
    const int width = rest < kColumnGroup ? static_cast<int>(rest) : kColumnGroup;
    Wide<T> total[kColumnGroup] = {};
    for (int64_t row = 0; row < rows; ++row) {
      for (int c = 0; c < width; ++c) total[c] += wide(dy[row * columns + first + c]);
    }
    for (int c = 0; c < width; ++c) deposit(sum + first + c, total[c], accumulate);
  }
};

void add_bias(const Context& context, const Tensor& bias, const Tensor& y) {
  dispatch_activation(y.dtype(), "linear", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, y.shape()[0],
                 AddToRows<T>{bias.data<Wide<T>>(), y.data<T>(), bias.numel()}, bias.numel());
  });
}

void sum_rows(const Context& context, const Tensor& dy, const GradSlot& d_bias) {
  dispatch_activation(dy.dtype(), "linear", [&](auto zero) {
    using T = decltype(zero);
    const int64_t columns = dy.shape()[1];
    parallel_for(context.stream, (columns + kColumnGroup - 1) / kColumnGroup,
                 SumOfRows<T>{dy.data<T>(), d_bias.into.data<Wide<T>>(), dy.shape()[0], columns,
                              d_bias.accumulate},
                 dy.shape()[0] * kColumnGroup);
  });
}

/// dy as the products read it: of what is wide a copy in the activations' type.
Tensor rounded(const Context& context, const Tensor& dy, DType type) {
  if (dy.dtype() == type) return dy;
  const Tensor copy = context.empty(dy.shape(), type);
  deposit(context.stream, dy, {copy, false});
  return copy;
}

void check_shapes(const Tensor& x, const Tensor& weight, const Variable& bias) {
  const DType parameters = wide_of(x.dtype());
  WISP_CHECK(x.shape().rank() == 2 && weight.shape().rank() == 2 &&
                 x.shape()[1] == weight.shape()[1] && weight.dtype() == parameters,
             "linear: input ", x.shape(), " ", name_of(x.dtype()), " and weight ", weight.shape(),
             " ", name_of(weight.dtype()), ", expected (N, I) and (O, I) ", name_of(parameters));
  if (!bias.defined()) return;
  WISP_CHECK(bias.shape() == Shape({weight.shape()[0]}) && bias.value().dtype() == parameters,
             "linear: bias ", bias.shape(), " ", name_of(bias.value().dtype()), ", expected (",
             weight.shape()[0], ") ", name_of(parameters));
}

}  // namespace

Variable linear(const Variable& x, const Variable& weight, const Variable& bias,
                LinearOptions options) {
  Context& context = x.context();
  check_shapes(x.value(), weight.value(), bias);
  const DType type = x.value().dtype();
  const int64_t rows = x.shape()[0];
  const int64_t in_features = x.shape()[1];
  const int64_t out_features = weight.shape()[0];

  const Tensor y = context.empty({rows, out_features}, options.wide ? wide_of(type) : type);
  context.backend.gemm(context.stream,
                       {.m = rows, .n = out_features, .k = in_features, .transpose_b = true},
                       x.value(), weight.value(), {y, false});
  std::vector<Variable> inputs{x, weight};
  if (bias.defined()) {
    add_bias(context, bias.value(), y);
    inputs.push_back(bias);
  }

  return record(
      "linear", y, inputs,
      [&context, rows, in_features, out_features, has_bias = bias.defined(), input = x.value(),
       w = weight.value()](const Tensor& dy, Inputs& in) {
        const Tensor factor = rounded(context, dy, input.dtype());
        if (in.wanted(0))
          context.backend.gemm(context.stream, {.m = rows, .n = in_features, .k = out_features},
                               factor, w, in.slot(0));
        if (in.wanted(1))
          context.backend.gemm(
              context.stream, {.m = out_features, .n = in_features, .k = rows, .transpose_a = true},
              factor, input, in.slot(1));
        if (has_bias && in.wanted(2)) sum_rows(context, dy, in.slot(2));
      });
}

}  // namespace wisp
