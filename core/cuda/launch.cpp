// What a build with CUDA makes of kernels that nvcc has not seen.
#include "core/base/error.h"
#include "core/device/stream.h"

namespace wisp {

const char* device_kind() { return "cuda"; }

void Stream::launch_bytes(const Launch&) const {
  throw Error(concat("a kernel for ", device_.str(),
                     " was compiled without nvcc: list its file in wisp_kernels()"));
}

}  // namespace wisp
