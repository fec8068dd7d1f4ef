// Splits that a device of this process holds, for all workers that compute on it. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "core/device/storage.h"
#include "data/examples.h"

namespace wisp {

class ResidentSplits {
 public:
  static constexpr int64_t kMostBytes = int64_t{2} << 30;  // of a split

  explicit ResidentSplits(Device device) : device_(device), pool_(device) {}

  /// `examples`, which outlive this, on the device, brought there by who asks first; as they are,
  /// if there is none, or it cannot hold them, or they have more than kMostBytes. Throws Error if
  /// the device has not so much memory left.
  const Examples& of(const Examples& examples);
  MemoryStats stats() const { return pool_.stats(); }

 private:
  const Device device_;
  MemoryPool pool_;  // its memory outlives that of the run, whose pool is another
  std::mutex mutex_;
  std::map<const Examples*, std::unique_ptr<Examples>> held_;  // null: as they are
};

}  // namespace wisp
