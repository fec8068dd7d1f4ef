// The form of whole.npy, which lies beside the recorded layers of a rank and describes the gradient
// that they are parts of. It has a row of f64 for each recorded step: the gradient's number of
// elements, and its norm over all layers, recorded or not, except those that counted as zero. The
// gradient is that of the rank's own mean loss, as the layers' rows are.
#pragma once

#include <cstdint>

namespace wisp {

inline constexpr const char* kWholeFile = "whole.npy";
inline constexpr int64_t kWholeWords = 2;

}  // namespace wisp
