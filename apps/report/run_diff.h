// A comparison of two runs: their configurations, their programs, and the first step that differs.
// Any thread.
#pragma once

#include <string>

#include "apps/run/run_record.h"

namespace wisp {

/// The first step that both runs recorded with different numbers.
struct FirstDifference {
  int64_t step = 0;
  std::string what;  // "loss", "accuracy", "bytes_sent", …
  double a = 0.0, b = 0.0;
};

struct RunDiff {
  std::vector<ConfigDifference> config;
  bool version = false;                  // whether programs or commits differ
  int64_t compared = 0;                  // steps that both recorded
  int64_t last_a = 0, last_b = 0;        // last step recorded; 0: none
  std::optional<FirstDifference> first;  // in results and bytes, never in times

  /// Whether configuration, program and recorded numbers are equal. Times are not compared.
  bool equal() const { return config.empty() && !version && !first && last_a == last_b; }
};

/// Compares numbers bit by bit.
RunDiff compare_runs(const RunRecord& a, const RunRecord& b);

/// The differences as text, with both summaries side by side.
std::string diff_text(const RunRecord& a, const RunRecord& b);

}  // namespace wisp
