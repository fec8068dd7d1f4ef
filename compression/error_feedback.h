// Error feedback turns a code into a compressor: what did not travel is kept in a residual and
// added to the next gradient. The residual is in units of the gradient: an old residual is applied
// at the new learning rate.
#pragma once

#include <memory>
#include <string>

#include "compression/code.h"

namespace wisp {

enum class Feedback { none, ef };

/// A compressor of one round: encode residual + gradient, exchange, decode, sum. A unit whose
/// gradient is not finite encodes zeros and keeps its residual.
/// Source: Stich et al. 2018, algorithm 1, with the learning rate outside the residual.
std::unique_ptr<Compressor> with_feedback(std::unique_ptr<Code> code, Feedback feedback,
                                          Traits traits);

/// Binds compression.feedback ("none", "ef", or "auto": `published`, the method's own).
Feedback bind_feedback(Config& config, Feedback published);

}  // namespace wisp
