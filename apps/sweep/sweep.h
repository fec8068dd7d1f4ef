// A sweep of training runs: all combinations of some values, each in its own process. Called from
// one thread.
#pragma once

#include <string>
#include <vector>

#include "apps/sweep/sweep_grid.h"

namespace wisp {

struct SweepRequest {
  std::string program;                 // program to call as `program train CONFIG …`
  std::string config;                  // path of the config file
  std::string out;                     // run directories are OUT/NAME, outputs OUT/NAME.log
  std::vector<std::string> overrides;  // key=value,value
  int jobs = 1;                        // runs at a time
};

/// Trains every run that OUT does not hold yet, as RunQueue::run(). Writes OUT/sweep.csv and
/// OUT/sweep.md anew after each. Throws Error before anything runs if a configuration is wrong, if
/// OUT holds a run of the same name and another configuration, or if another sweep uses OUT.
int run_sweep(const SweepRequest& request, const LoadSwept& load);

}  // namespace wisp
