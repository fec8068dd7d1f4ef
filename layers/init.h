// The distributions from which layers draw their first weights. Any thread may call.
#pragma once

#include <cmath>

#include "core/parameter.h"

namespace wisp {

/// Normal with variance 2 / fan. Source: He et al. 2015, "Delving deep into rectifiers": equation
/// 10 with the inputs of an output as `fan`, equation 14 (the backward form) with the outputs of an
/// input.
inline Init he_normal(int64_t fan) {
  return {Init::Kind::normal, std::sqrt(2.0 / static_cast<double>(fan))};
}

/// Uniform in ±1 / sqrt(fan), as PyTorch starts linear and recurrent layers.
inline Init uniform_for(int64_t fan) {
  return {Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(fan))};
}

}  // namespace wisp
