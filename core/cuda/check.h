// Turns the status of a CUDA call into an exception. Any thread.
#pragma once

#include <cuda_runtime.h>

#include "core/error.h"

namespace wisp::cuda {

/// Throws Error naming `call` if it failed.
inline void check(cudaError_t status, const char* call) {
  WISP_CHECK(status == cudaSuccess, call, ": ", cudaGetErrorString(status), " (",
             cudaGetErrorName(status), ")");
}

}  // namespace wisp::cuda

#define WISP_CUDA_CHECK(call) ::wisp::cuda::check((call), #call)
