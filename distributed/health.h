// How compression fares in a step, as a Probe measures it. A plain value.
#pragma once

namespace wisp {

/// Of the units that were compressed in a step, all workers together. NaN where nothing defines it.
struct Health {
  double residual = 0.0;   // norm of what has not been sent / norm of the gradients
  double staleness = 0.0;  // mean number of steps since an element of the result was not zero;
                           // nothing of units whose result is a tracked sum, zero no more
  double cosine = 0.0;     // between the decoded result and the sum of the workers' gradients
};

}  // namespace wisp
