// The share of this machine's cores that other programs take. Loops of several threads suffer from
// it: they wait for the slowest thread, and spin while they wait. Linux only; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace wisp {

/// The seconds that some cores were busy since the machine started, whoever kept them busy.
/// `stat` is the text of /proc/stat, `cores` their numbers, ascending. Nothing if a core has no
/// line there.
std::optional<double> busy_seconds(const std::string& stat, const std::vector<int>& cores);

/// Counts what others do on the cores that this process may use.
class SharedCores {
 public:
  SharedCores();

  int cores() const { return static_cast<int>(cores_.size()); }
  /// How many cores other processes kept busy since the last call, or since this object was made;
  /// 0 where the system does not say.
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

/// What to do where `workers` workers of `threads` threads, which spin while they wait, share
/// `cores` cores with programs that take `others` of them; empty if there is room for both.
std::string shared_cores_advice(double others, int cores, int workers, int threads);

}  // namespace wisp
