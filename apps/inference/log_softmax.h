// The log softmax of a model's output, in f64. Any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace wisp {

/// Natural logs of the softmax of one row of logits (rows, classes). Throws Error if a result is
/// not finite.
std::vector<double> log_softmax(const Tensor& logits, int64_t row);

}  // namespace wisp
