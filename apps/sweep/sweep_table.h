// Tables of a sweep's runs and their results, as CSV and as Markdown. Any thread.
#pragma once

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
  Summary summary;
};

/// One row per run: its name, the value of each axis (empty where it does not apply), version,
/// numerics, and every number of the summary.
std::string sweep_csv(std::span<const SweepAxis> axes, std::span<const SweepResult> results);

/// One row per combination of the axes except `seed`, whose runs repeat a combination: mean ±
/// sample standard deviation over n runs; a single run has no deviation. Axes with one value have
/// no column. "-" where an axis does not apply. The programs and numerics of the runs follow the
/// table.
std::string sweep_markdown(std::span<const SweepAxis> axes, std::span<const SweepResult> results);

}  // namespace wisp
