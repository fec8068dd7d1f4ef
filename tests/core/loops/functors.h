// Functors for tests of loops. Values.
#pragma once

#include "core/loops/parallel.h"

namespace wisp {

struct AddSquare {
  const float* x;
  float* y;
  WISP_HD void operator()(int64_t i) const { y[i] += x[i] * x[i]; }
};

struct SumOfFloats {
  using Value = float;
  const float* x;
  WISP_HD float identity() const { return 0.0f; }
  WISP_HD float map(int64_t i) const { return x[i]; }
  WISP_HD float combine(float a, float b) const { return a + b; }
};

}  // namespace wisp
