#include "layers/linear.h"

#include "layers/init.h"

namespace wisp {

Linear::Linear(int64_t in, int64_t out, bool bias)
    : weight_(parameter("weight", {out, in}, uniform_for(in), /*decay=*/true, "linear")) {
  if (bias) add_bias(uniform_for(in));
}

Linear::Linear(int64_t in, int64_t out, Init weight, Init bias)
    : weight_(parameter("weight", {out, in}, weight, /*decay=*/true, "linear")) {
  add_bias(bias);
}

Linear::Linear(Parameter& weight, Init bias) : weight_(weight) { add_bias(bias); }

void Linear::add_bias(Init bias) {
  bias_ = &parameter("bias", {weight_.shape[0]}, bias, /*decay=*/false, "bias");
}

Variable Linear::operator()(const Variable& x, LinearOptions options) const {
  return linear(x, weight_.variable, bias_ ? bias_->variable : Variable(), options);
}

}  // namespace wisp
