// The release of a residual: when a unit becomes dense again, its compressor adds the residual to
// the worker's gradient.
#pragma once

#include "compression/compressor.h"

namespace wisp {

/// gradient += factor * residual, then residual <- 0, in the unit's slices of the two arenas.
void hand_over(Context& context, const Unit& unit, const Tensor& residual, double factor);

}  // namespace wisp
