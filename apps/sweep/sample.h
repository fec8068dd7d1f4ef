// Mean and spread of a sample. Any thread.
#pragma once

#include <span>

namespace wisp {

/// NaN without values.
double mean_of(std::span<const double> values);
/// The sample standard deviation; NaN for fewer than two values.
double deviation_of(std::span<const double> values);

}  // namespace wisp
