// Values of a file with which no model computes anything. Any thread.
#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace wisp {

/// What is wrong with the values of a model's tensor, as "3 of 32 values are not finite"; empty if
/// nothing is. A running variance must not be negative. The tensor lies on the host.
std::string unusable_values(const std::string& name, const Tensor& tensor);

}  // namespace wisp
