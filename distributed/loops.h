// Elementwise kernels that several files of this folder share. For any device.
#pragma once

#include "core/loops/parallel.h"

namespace wisp {

/// x <- x + step · pull
struct Pull {
  float* x;
  const float* pull;
  float step;
  WISP_HD void operator()(int64_t i) const { x[i] += step * pull[i]; }
};

struct CopyInto {
  const float* from;
  float* into;
  WISP_HD void operator()(int64_t i) const { into[i] = from[i]; }
};

}  // namespace wisp
