// The health of compression in a step, as measured by a Probe. A value; any thread.
#pragma once

namespace wisp {

/// Measures over all units that were compressed in a step, for all workers together. NaN if
/// undefined.
struct Health {
  double residual = 0.0;   // norm of the unsent part / norm of the gradients
  double staleness = 0.0;  // mean number of steps since an element of the result was last not zero;
                           // leaves out units of ef21, whose result is never zero again
  double cosine = 0.0;     // between the decoded result and the sum of the workers' gradients
};

}  // namespace wisp
