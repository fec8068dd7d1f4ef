#include "layers/linear.h"

#include <cmath>

namespace wisp {
namespace {

Init uniform_for(int64_t in) {
  return {Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(in))};
}

}  // namespace

Linear::Linear(int64_t in, int64_t out) : Linear(in, out, uniform_for(in), uniform_for(in)) {}

Linear::Linear(int64_t in, int64_t out, Init weight, Init bias)
    : weight_(parameter("weight", {out, in}, weight, /*decay=*/true, "linear")),
      bias_(parameter("bias", {out}, bias, /*decay=*/false, "bias")) {}

Linear::Linear(Parameter& weight, Init bias)
    : weight_(weight), bias_(parameter("bias", {weight.shape[0]}, bias, /*decay=*/false, "bias")) {}

Variable Linear::operator()(const Variable& x, LinearOptions options) const {
  return linear(x, weight_.variable, bias_.variable, options);
}

}  // namespace wisp
