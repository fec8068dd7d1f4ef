// Remarks of devices' libraries for the user, for example on a slow fallback. The process keeps
// each text once, and the program shows it. Any thread.
#pragma once

#include <string>
#include <vector>

namespace wisp {

constexpr int kMostDeviceRemarks = 20;  // batches of many shapes shall not fill the screen

/// Keeps the remark, unless the process had it before or has had kMostDeviceRemarks others.
void remark(const std::string& text);
/// The remarks since the last call, in order.
std::vector<std::string> take_device_remarks();

}  // namespace wisp
