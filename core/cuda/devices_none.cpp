// The substitute for devices in a build without CUDA: there is none. In programs that link
// wisp::emulated, its functions replace the weak ones here.
#include "core/backend.h"
#include "core/base/error.h"
#include "core/cuda/device.h"
#include "core/cuda/memory.h"
#include "core/cuda/stream.h"

namespace wisp {
namespace {

constexpr char kNone[] =
    "this program computes on the CPU only: configure Wisp with -DWISP_CUDA=ON for GPUs, or link "
    "wisp::emulated for emulated devices";

[[noreturn]] void refuse() { throw Error(kNone); }

}  // namespace

std::string missing_for_cuda() {
  return "CUDA: configure with -DWISP_CUDA=ON (cmake --preset cuda)";
}

[[gnu::weak]] const char* device_kind() { return "cuda"; }

[[gnu::weak]] void use(Device device) {
  if (device.is_cuda()) refuse();
}

[[gnu::weak]] void Stream::launch_bytes(const Launch&) const { refuse(); }

[[gnu::weak]] std::unique_ptr<Backend> make_device_backend(MemoryPool&, const Stream&, bool,
                                                           const GpuMath&) {
  refuse();
}

namespace cuda {

[[gnu::weak]] std::string obstacle(Device) { return kNone; }
[[gnu::weak]] void check_device(Device) { refuse(); }
[[gnu::weak]] std::vector<DeviceFacts> list_devices() { return {}; }

[[gnu::weak]] std::unique_ptr<AddressRange> reserve_addresses(Device, int64_t) { refuse(); }
[[gnu::weak]] std::shared_ptr<std::byte> make_pinned(int64_t) { refuse(); }

[[gnu::weak]] OwnedStream make_stream(Device, int64_t) { refuse(); }
[[gnu::weak]] void synchronize(void*) { refuse(); }
[[gnu::weak]] std::shared_ptr<void> make_event(Device, bool) { refuse(); }
[[gnu::weak]] void record(void*, void*) { refuse(); }
[[gnu::weak]] void wait(void*, void*) { refuse(); }
[[gnu::weak]] void synchronize_event(void*) { refuse(); }
[[gnu::weak]] bool reached(void*) { refuse(); }
[[gnu::weak]] double elapsed_us(void*, void*) { refuse(); }
[[gnu::weak]] void copy_bytes(void*, const std::byte*, std::byte*, int64_t) { refuse(); }
[[gnu::weak]] void fill_bytes(void*, std::byte*, int, int64_t) { refuse(); }

}  // namespace cuda
}  // namespace wisp
