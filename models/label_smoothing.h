// The key with which models that classify samples smooth their targets.
#pragma once

#include "core/io/config.h"

namespace wisp {

/// Binds model.label_smoothing, what cross_entropy() takes. Throws Error with file:line out of
/// range.
double bind_label_smoothing(Config& config);

}  // namespace wisp
