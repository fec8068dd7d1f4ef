// The share of this machine's cores that other programs take. It matters to parallel loops: they
// wait for their slowest thread, and spin while they wait. Linux only. Any thread, one at a time
// per object.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace wisp {

/// The seconds that `cores` were busy, for any process, since the machine started. `stat` is the
/// text of /proc/stat. `cores` are core numbers, ascending. Empty if a core has no line in it.
std::optional<double> busy_seconds(const std::string& stat, const std::vector<int>& cores);

/// Measures the load of other processes on the cores that this process may use.
class SharedCores {
 public:
  SharedCores();

  int cores() const { return static_cast<int>(cores_.size()); }
  /// The mean number of cores that other processes kept busy since the last call, or since
  /// construction. 0 if the system does not say.
  double taken_by_others();

 private:
  struct Reading {
    double at_us = 0.0;
    double others_s = 0.0;
  };
  std::optional<Reading> read() const;

  std::vector<int> cores_;
  std::optional<Reading> before_;
};

/// Advice for a run of `workers` workers with `threads` threads each, which spin while they wait,
/// on `cores` cores of which other programs take `others`. Empty if there is room for both.
std::string shared_cores_advice(double others, int cores, int workers, int threads);

}  // namespace wisp
