// A device, on which memory lies and work runs. A value type.
#pragma once

#include <string>

namespace wisp {

/// The name of Device::Kind::cuda in this program: "cuda" or "emulated".
const char* device_kind();

struct Device {
  enum class Kind { cpu, cuda } kind = Kind::cpu;  // cuda: or an emulated one
  int index = 0;

  bool is_cuda() const { return kind == Kind::cuda; }
  bool operator==(const Device&) const = default;
  /// "cpu", "cuda:0", "emulated:0".
  std::string str() const {
    if (!is_cuda()) return "cpu";
    return std::string(device_kind()).append(":").append(std::to_string(index));
  }
};

/// Makes `device` the calling thread's current device. Does nothing for the CPU.
void use(Device device);

}  // namespace wisp
