#include "core/device/device_remarks.h"

#include <algorithm>
#include <cstddef>
#include <mutex>

namespace wisp {
namespace {

std::mutex mutex;
std::vector<std::string> remarks;  // all of the process
size_t taken = 0;                  // number of remarks that the program has taken

}  // namespace

void remark(const std::string& text) {
  std::lock_guard lock(mutex);
  if (remarks.size() >= kMostDeviceRemarks) return;
  if (std::find(remarks.begin(), remarks.end(), text) == remarks.end()) remarks.push_back(text);
}

std::vector<std::string> take_device_remarks() {
  std::lock_guard lock(mutex);
  const auto first = remarks.begin() + static_cast<std::ptrdiff_t>(taken);
  taken = remarks.size();
  return {first, remarks.end()};
}

}  // namespace wisp
