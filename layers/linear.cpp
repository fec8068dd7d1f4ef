#include "layers/linear.h"

#include <cmath>

namespace wisp {
namespace {

Init uniform_for(int64_t in) {
  return {Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(in))};
}

}  // namespace

Linear::Linear(int64_t in, int64_t out)
    : weight_(parameter("weight", {out, in}, uniform_for(in), /*decay=*/true, "linear")),
      bias_(parameter("bias", {out}, uniform_for(in), /*decay=*/false, "bias")) {}

Variable Linear::operator()(const Variable& x) const {
  return linear(x, weight_.variable, bias_.variable);
}

}  // namespace wisp
