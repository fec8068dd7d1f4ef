// The launch of a kernel that was compiled without nvcc, in a build with CUDA: an error.
#include "core/base/error.h"
#include "core/device/stream.h"

namespace wisp {

const char* device_kind() { return "cuda"; }

void Stream::launch_bytes(const Launch&) const {
  throw Error(concat("a kernel for ", device_.str(),
                     " was compiled without nvcc: list its file in wisp_kernels()"));
}

}  // namespace wisp
