#include "core/backend.h"
#include "core/ops.h"
#include "core/ops/bias.h"
#include "core/ops/gradient.h"
#include "core/products.h"

namespace wisp {
namespace {

void check_shapes(const Tensor& x, const Tensor& weight, const Variable& bias) {
  const DType parameters = wide_of(x.dtype());
  WISP_CHECK(x.shape().rank() == 2 && weight.shape().rank() == 2 &&
                 x.shape()[1] == weight.shape()[1] && weight.dtype() == parameters,
             "linear: input ", x.shape(), " ", name_of(x.dtype()), " and weight ", weight.shape(),
             " ", name_of(weight.dtype()), ", expected (N, I) and (O, I) ", name_of(parameters));
  check_bias("linear", bias, weight.shape()[0], parameters);
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
  const Tensor& w = weight.factor(type);
  const GemmSpec product{.m = rows, .n = out_features, .k = in_features, .transpose_b = true};
  std::vector<Variable> inputs{x, weight};
  if (bias.defined()) inputs.push_back(bias);
  if (!bias.defined() || !context.backend.products().gemm_bias(context.stream, product, x.value(),
                                                               w, bias.value(), y)) {
    context.backend.products().gemm(context.stream, product, x.value(), w, {y, false});
    if (bias.defined()) add_bias(context.stream, bias.value(), y);
  }

  return record("linear", y, inputs,
                [&context, rows, in_features, out_features, has_bias = bias.defined(),
                 input = x.value(), w](const Tensor& dy, Inputs& in) {
                  const Tensor factor = in_type(input.dtype(), dy, context.stream, context.pool);
                  if (in.wanted(0))
                    context.backend.products().gemm(
                        context.stream, {.m = rows, .n = in_features, .k = out_features}, factor, w,
                        in.slot(0));
                  if (in.wanted(1))
                    context.backend.products().gemm(
                        context.stream,
                        {.m = out_features, .n = in_features, .k = rows, .transpose_a = true},
                        factor, input, in.slot(1));
                  if (has_bias && in.wanted(2))
                    sum_rows(context.stream, context.pool, dy, in.slot(2));
                });
}

}  // namespace wisp
