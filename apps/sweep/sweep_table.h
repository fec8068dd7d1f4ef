// The table of a sweep's runs and what they reached, as CSV and as Markdown.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/run/run_facts.h"
#include "apps/run/summary.h"
#include "apps/sweep/sweep_grid.h"

namespace wisp {

struct SweepResult {
  SweepRun run;
  std::string version;  // of the program, with its commit
  RunFacts facts;
  Summary summary;
};

/// A row per run: its name, the value of each axis (empty where it does not apply), version,
/// numerics, and every number of the summary.
std::string sweep_csv(std::span<const SweepAxis> axes, std::span<const SweepResult> results);

/// A row per combination of the axes other than `seed`, which repeats a combination: mean ± sample
/// standard deviation over its n runs; one run has no deviation. Axes of a single value have no
/// column; "-" where an axis does not apply. Below it, which program computed the runs with what.
std::string sweep_markdown(std::span<const SweepAxis> axes, std::span<const SweepResult> results);

}  // namespace wisp
