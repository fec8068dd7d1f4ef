// Asking for memory before a loop reads it.
#pragma once

#include "core/tensor/dtype.h"

namespace wisp {

/// For a loop that reads `at` now, and so does for each line of 64 bytes: asks for the line 2 KB
/// behind, which may lie beyond the array. The processor's own prefetcher stops at the end of a
/// page and looks less far ahead the more arithmetic the loop has. Nothing on a GPU, which has
/// other threads to run meanwhile.
WISP_HD inline void prefetch_ahead(const float* at) {
#ifndef __CUDA_ARCH__
  constexpr int kAhead = 512;  // floats
  __builtin_prefetch(at + kAhead);
#endif
}

}  // namespace wisp
