// The configuration key of label smoothing, for models that classify samples.
#pragma once

#include "core/io/config.h"

namespace wisp {

/// Binds model.label_smoothing and returns the share for cross_entropy(). Throws Error with
/// file:line if it is out of range.
double bind_label_smoothing(Config& config);

}  // namespace wisp
