#include "core/cuda/device.h"

#include "core/cuda/check.h"

namespace wisp {

void use(Device device) {
  if (device.is_cuda()) WISP_CUDA_CHECK(cudaSetDevice(device.index));
}

namespace cuda {
namespace {

// The driver's CUDA version, 1000 major + 10 minor.
int driver_version() {
  int version = 0;
  WISP_CUDA_CHECK(cudaDriverGetVersion(&version));
  return version;  // 0: no driver
}

int runtime_version() {
  int version = 0;
  WISP_CUDA_CHECK(cudaRuntimeGetVersion(&version));
  return version;
}

std::string version_text(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

/// The remedy if no device was found.
std::string advice() {
  const int driver = driver_version(), major = runtime_version() / 1000;
  if (driver == 0)
    return concat("there is no driver: install NVIDIA's, for CUDA ", major,
                  " or newer; a container has to be given it");
  if (driver / 1000 < major)
    return concat("the driver is for CUDA ", version_text(driver), ": install one for ", major,
                  " or newer");
  return "is there a GPU (nvidia-smi lists them), and does CUDA_VISIBLE_DEVICES leave it out?";
}

DeviceFacts facts_of(int index) {
  cudaDeviceProp properties{};
  WISP_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  DeviceFacts facts{.device = {Device::Kind::cuda, index},
                    .name = properties.name,
                    .capability = concat(properties.major, ".", properties.minor),
                    .driver = version_text(driver_version()),
                    .runtime = version_text(runtime_version())};
  size_t free = 0, total = 0;
  cudaError_t status = cudaSetDevice(index);
  if (status == cudaSuccess) status = cudaMemGetInfo(&free, &total);
  if (status != cudaSuccess) facts.failure = describe_and_clear(status);
  facts.free_bytes = static_cast<int64_t>(free), facts.total_bytes = static_cast<int64_t>(total);
  return facts;
}

}  // namespace

std::string obstacle(Device device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return concat(describe_and_clear(status), "; ", advice());
  if (0 <= device.index && device.index < count) return {};
  return concat("there are ", count, " devices, counted from 0");
}

void check_device(Device device) {
  const std::string found = obstacle(device);
  WISP_CHECK(found.empty(), device.str(), ": ", found);
}

std::vector<DeviceFacts> list_devices() {
  if (!obstacle({Device::Kind::cuda, 0}).empty()) return {};
  int count = 0;
  WISP_CUDA_CHECK(cudaGetDeviceCount(&count));
  std::vector<DeviceFacts> devices;
  for (int index = 0; index < count; ++index) devices.push_back(facts_of(index));
  return devices;
}

}  // namespace cuda
}  // namespace wisp
