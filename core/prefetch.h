// A prefetch hint for loops whose speed is limited by memory. Any thread.
#pragma once

#include "core/tensor/dtype.h"

namespace wisp {

/// Asks for the cache line 2 KB beyond `at`, which may lie beyond the array. A loop calls it once
/// per line of 64 bytes that it reads. The processor's own prefetcher stops at the end of a page,
/// and looks less far ahead the more arithmetic the loop has. On a GPU it does nothing, because
/// other threads run meanwhile.
WISP_HD inline void prefetch_ahead(const float* at) {
#ifndef __CUDA_ARCH__
  constexpr int kAhead = 512;  // floats
  __builtin_prefetch(at + kAhead);
#endif
}

}  // namespace wisp
