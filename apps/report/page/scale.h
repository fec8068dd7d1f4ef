// An axis of a chart: a map from values to positions, and its ticks. Any thread.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace wisp {

/// The least and the greatest of some values.
struct Extremes {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

class Scale {
 public:
  /// Maps `low` to `from` and `high` to `to`, which are finite. A range that is too narrow for its
  /// ticks to differ is widened, so is an empty one, and one without bounds is cut. Values of a log
  /// scale are above 0.
  Scale(double low, double high, double from, double to, bool log);
  /// A linear scale with its ends widened to ticks.
  static Scale rounded(double low, double high, double from, double to);

  static constexpr int kMostTicks = 32;

  double at(double value) const;
  /// Up to kMostTicks round values within the range, three to nine as a rule.
  std::vector<double> ticks() const;

 private:
  std::vector<double> log_ticks() const;  // few ticks in a narrow range

  double low_, high_, from_, to_;
  bool log_;
};

/// 1500000 -> "1.5M", 0.25 -> "0.25".
std::string tick_text(double value);

}  // namespace wisp
