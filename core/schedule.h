// Learning-rate schedules: a factor of the base rate as a pure function of the epoch.
#pragma once

#include <string>
#include <vector>

#include "core/config.h"

namespace wisp {

struct LrSchedule {
  std::string kind = "constant";   // constant | multi_step | cosine
  std::vector<double> milestones;  // multi_step: epochs at which the rate is multiplied by `factor`
  double factor = 0.1;
  double warmup_epochs = 0.0;  // linear rise from warmup_start to 1, multiplied with the rest
  double warmup_start = 0.1;
  double epochs = 1.0;  // of the whole run: cosine ends there at zero

  /// Binds keys "schedule.…" and checks them; `epochs` is the length of the run.
  static LrSchedule bind(Config& config, double epochs);

  /// Factor of the base learning rate at `epoch` (with fraction, from 0).
  /// Cosine: Loshchilov & Hutter 2017, without restarts. Warm-up: Goyal et al. 2017, section 2.2.
  double at(double epoch) const;
};

}  // namespace wisp
