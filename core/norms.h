// Batch normalisation, with a residual and a ReLU fused.
#pragma once

#include <cstdint>

namespace wisp {

/// The rows are all positions of all images, (N·H·W, C).
struct BatchNormSpec {
  int64_t rows = 0, channels = 0;
  double epsilon = 1e-5;
  bool relu = false;      // y = max(0, ·) after scale, shift and residual
  bool residual = false;  // a tensor of x's shape is added before the ReLU
};

}  // namespace wisp
