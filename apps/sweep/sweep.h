// Trains all runs of a sweep, each in a process of its own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/sweep/sweep_grid.h"

namespace wisp {

struct SweepRequest {
  std::string program;                     // that is called as `program train CONFIG …`
  std::string config;                      // its file
  std::string out;                         // OUT/NAME is a run's directory, OUT/NAME.log its output
  std::span<const std::string> overrides;  // key=value,value
  int jobs = 1;                            // runs at a time
};

/// Makes every run that OUT does not hold yet: one that was interrupted goes on from its last
/// checkpoint, one that has ended is left alone. After each, OUT/sweep.csv and OUT/sweep.md are
/// written anew. A run that fails does not end the others; SIGINT and SIGTERM go to the runs, and
/// no more are started. Tells on stdout how it goes. Returns the exit status: 0, 1 if runs failed,
/// 128 + the signal. `load` reads the config with overrides. Throws Error before anything runs if a
/// configuration is wrong, if OUT holds a run of that name with another one, or if another sweep
/// works there.
int run_sweep(const SweepRequest& request,
              const std::function<Config(std::vector<std::string>)>& load);

}  // namespace wisp
