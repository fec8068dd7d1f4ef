// The share of elements that sparse methods send, by epoch: a final ratio, reached over a warm-up.
// A value; any thread.
#pragma once

#include <vector>

#include "core/io/config.h"

namespace wisp {

class RatioSchedule {
 public:
  /// Binds compression.ratio and compression.warmup*; throws Error with the key's place for values
  /// out of range. Source: Lin et al. 2018, section 3.3 (list), and the authors' code
  /// (exponential).
  explicit RatioSchedule(Config& config);

  /// Kept / total at the fractional `epoch`, never below the final ratio. 1 or more means dense.
  ///   list: the entries share the warm-up's epochs equally, so one epoch may hold the whole list
  ///   exponential: ratio^((e + 1) / (warmup_epochs + 1)) in epoch e
  double at(double epoch) const;
  /// The epochs at which the ratio may change, ascending from 0.
  std::vector<double> phases() const;
  double final_ratio() const { return ratio_; }

 private:
  enum class Warmup { none, list, exponential };

  double ratio_ = 0.001;
  Warmup warmup_ = Warmup::none;
  double epochs_ = 4.0;
  std::vector<double> list_ = {0.25, 0.0625, 0.015625, 0.004};
};

}  // namespace wisp
