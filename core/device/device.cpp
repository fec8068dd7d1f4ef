#include "core/device/device.h"

namespace wisp {

std::string Device::str() const {
  if (!is_cuda()) return "cpu";
  return std::string(device_kind()).append(":").append(std::to_string(index));
}

}  // namespace wisp
