// What a model's output says of each class.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"

namespace wisp {

/// Natural logarithms of the softmax of a row of logits (rows, classes). Throws Error if they are
/// not finite.
std::vector<double> log_softmax(const Tensor& logits, int64_t row);

}  // namespace wisp
