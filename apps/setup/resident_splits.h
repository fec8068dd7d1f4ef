// The splits that a device of this process holds, shared by all workers that compute on it. Any
// thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "core/device/storage.h"
#include "data/examples.h"

namespace wisp {

class ResidentSplits {
 public:
  static constexpr int64_t kMostBytes = int64_t{2} << 30;  // per split

  explicit ResidentSplits(Device device) : device_(device), pool_(device) {}

  /// The examples in device memory; the first call uploads them. Returns `examples` itself on the
  /// CPU, if the device cannot hold their kind, or if they exceed kMostBytes. `examples` outlives
  /// this object. Throws Error if the device lacks the memory.
  const Examples& of(const Examples& examples) {
    if (!device_.is_cuda()) return examples;
    std::lock_guard lock(mutex_);
    if (!held_.contains(&examples))
      held_[&examples] = examples.on_device(pool_, Stream::on(device_), kMostBytes);
    const std::unique_ptr<Examples>& held = held_[&examples];
    return held ? *held : examples;
  }
  MemoryStats stats() const { return pool_.stats(); }

 private:
  const Device device_;
  MemoryPool pool_;  // not the run's pool: its memory lives longer
  std::mutex mutex_;
  std::map<const Examples*, std::unique_ptr<Examples>> held_;  // null: not held by the device
};

}  // namespace wisp
