// What differs between two runs: what they were told, which program, and where their losses part.
#pragma once

#include <string>

#include "apps/run/run_record.h"

namespace wisp {

/// The first step that both recorded and of which they recorded other numbers.
struct FirstDifference {
  int64_t step = 0;
  std::string what;  // "loss", "accuracy", "bytes_sent", …
  double a = 0.0, b = 0.0;
};

struct RunDiff {
  std::vector<ConfigDifference> config;
  bool version = false;                  // other programs or commits
  int64_t compared = 0;                  // steps that both recorded
  int64_t last_a = 0, last_b = 0;        // last step recorded; 0: none
  std::optional<FirstDifference> first;  // what a run computes and sends; no times

  /// Same configuration, program and numbers, as far as recorded. Times never are.
  bool equal() const { return config.empty() && !version && !first && last_a == last_b; }
};

/// Numbers are equal if their bits are.
RunDiff compare_runs(const RunRecord& a, const RunRecord& b);

/// For a person, with the summaries side by side.
std::string diff_text(const RunRecord& a, const RunRecord& b);

}  // namespace wisp
