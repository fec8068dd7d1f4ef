// A 2-d convolution without bias (a norm follows it). Used by the thread of its context.
#pragma once

#include "core/ops.h"
#include "layers/module.h"

namespace wisp {

class Conv2d final : public Module {
 public:
  /// Weights start normal with variance 2 / (O · kernel²). Source: He et al. 2015, "Delving deep
  /// into rectifiers", equation 14 (the backward form).
  Conv2d(int in, int out, int kernel, ConvOptions options = {});

  /// (N, H, W, in) -> (N, H', W', out).
  Variable operator()(const Variable& x) const;

 private:
  ConvOptions options_;
  Parameter& weight_;
};

}  // namespace wisp
