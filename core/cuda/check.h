// A check that turns the status of a CUDA call into an exception. Any thread.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "core/base/error.h"

namespace wisp::cuda {

/// Describes a failure and clears it; otherwise the next launch would report it.
inline std::string describe_and_clear(cudaError_t status) {
  const std::string words = concat(cudaGetErrorString(status), " (", cudaGetErrorName(status), ")");
  cudaGetLastError();
  return words;
}

/// Throws OutOfMemory or Error that names `call` if `status` is a failure.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  const std::string failure = concat(call, ": ", describe_and_clear(status));
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(failure);
  throw Error(failure);
}

}  // namespace wisp::cuda

#define WISP_CUDA_CHECK(call) ::wisp::cuda::check((call), #call)
