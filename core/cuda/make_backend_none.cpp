// A stand-in for a build without the libraries of CUDA's backend. Memory, streams and kernels work
// in it, but nothing trains.
#include "core/backend.h"

namespace wisp {

std::unique_ptr<Backend> make_device_backend(MemoryPool&, const Stream&, bool, const GpuMath&) {
  return make_cpu_reference_backend();
}

std::string missing_for_cuda() {
  return WISP_MISSING_LIBRARIES
      ", which CUDA's backend needs: configure with -DWISP_CUDA_LIBRARIES_DIR=FOLDER";
}

}  // namespace wisp
