// Where memory lives and work runs.
#pragma once

#include <string>

namespace wisp {

struct Device {
  enum class Kind { cpu, cuda } kind = Kind::cpu;  // cuda: emulated, in a build without CUDA
  int index = 0;

  bool is_cuda() const { return kind == Kind::cuda; }
  bool operator==(const Device& other) const { return kind == other.kind && index == other.index; }
  /// "cpu", "cuda:0", "emulated:0".
  std::string str() const;
};

/// Makes the device the calling thread's current one, on whose streams it works. The CPU changes
/// nothing.
void use(Device device);

/// What this build's Device::Kind::cuda is: "cuda" or "emulated".
const char* device_kind();

}  // namespace wisp
