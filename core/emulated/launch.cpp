// Kernels on emulated devices: the CPU's loop over an argument whose addresses are aliases.
#include <cstring>
#include <memory>
#include <new>

#include "core/base/error.h"
#include "core/device/device_work.h"
#include "core/device/stream.h"
#include "core/emulated/memory.h"
#include "core/emulated/runtime.h"

namespace wisp {
namespace {

constexpr size_t kMostArgument = 4096;  // limit in bytes of every CUDA device

}  // namespace

const char* device_kind() { return "emulated"; }

void Stream::launch_bytes(const Launch& launch) const {
  WISP_CHECK(launch.size <= kMostArgument, "a kernel's argument of ", launch.size,
             " bytes; a device takes ", kMostArgument);
  const std::align_val_t alignment{launch.alignment};
  const std::shared_ptr<std::byte> argument(
      static_cast<std::byte*>(::operator new(launch.size, alignment)),
      [alignment](std::byte* owned) { ::operator delete(owned, alignment); });
  std::memcpy(argument.get(), launch.bytes, launch.size);
  emulated::Memory::get().relocate(argument.get(), launch.size);
  count_device_work({.kernels = launch.kernels});
  emulated::enqueue(native(), [argument, run = launch.run] { run(argument.get()); });
}

}  // namespace wisp
