// Tables of a sweep's runs and their results, as CSV and as Markdown. Any thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "apps/run/run_facts.h"
#include "apps/run/summary.h"
#include "apps/sweep/sweep_grid.h"

namespace wisp {

struct SweepResult {
  SweepRun run;
  std::string version;  // version and commit of the program
  RunFacts facts;
  std::optional<Summary> summary;  // empty if the run ended because it diverged
  std::string diverged;            // why its figures are none; empty: they are

  bool healthy() const { return summary && diverged.empty(); }
};

/// One row per run: its name, the value of each axis (empty where it does not apply), version,
/// numerics, every number of the summary, and why it diverged, if it did.
std::string sweep_csv(std::span<const SweepAxis> axes, std::span<const SweepResult> results);

/// One row per combination of the axes except `seed`, whose runs repeat a combination: mean ±
/// sample standard deviation over n runs; a single run has no deviation. Runs that diverged are
/// counted and left out of the means. Axes with one value have no column. "-" where an axis does
/// not apply. The programs and numerics of the runs follow the table.
std::string sweep_markdown(std::span<const SweepAxis> axes, std::span<const SweepResult> results);

}  // namespace wisp
