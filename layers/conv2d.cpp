#include "layers/conv2d.h"

#include <cmath>

namespace wisp {
namespace {

Init he_normal(int fan) { return {Init::Kind::normal, std::sqrt(2.0 / fan)}; }

Shape weight_shape(int in, int out, int kernel, const ConvOptions& options) {
  WISP_CHECK(in > 0 && out > 0 && kernel > 0 && options.groups > 0 && in % options.groups == 0,
             "Conv2d: ", in, " to ", out, " channels, kernel ", kernel, ", ", options.groups,
             " groups, expected positive numbers and groups that divide the channels");
  return {out, kernel, kernel, in / options.groups};
}

}  // namespace

Conv2d::Conv2d(int in, int out, int kernel, ConvOptions options)
    : options_(options),
      weight_(parameter("weight", weight_shape(in, out, kernel, options),
                        he_normal(out * kernel * kernel), /*decay=*/true, "conv")) {}

Variable Conv2d::operator()(const Variable& x) const {
  return conv2d(x, weight_.variable, options_);
}

}  // namespace wisp
