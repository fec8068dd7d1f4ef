#include "core/cuda/device.h"

#include "core/cuda/check.h"

namespace wisp {

void use(Device device) {
  if (device.is_cuda()) WISP_CUDA_CHECK(cudaSetDevice(device.index));
}

namespace cuda {

void check_device(Device device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  WISP_CHECK(status == cudaSuccess, device.str(), ": ", cudaGetErrorString(status), " (",
             cudaGetErrorName(status), "); is a driver installed, and the device visible?");
  WISP_CHECK(0 <= device.index && device.index < count, device.str(), ": there are ", count,
             " devices, counted from 0");
}

}  // namespace cuda
}  // namespace wisp
