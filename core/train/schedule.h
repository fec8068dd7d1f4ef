// Learning-rate schedules: a factor of the base rate as a pure function of the epoch. The factor of
// kind "plateau" depends on losses instead (core/train/plateau.h). Plain values.
#pragma once

#include <string>
#include <vector>

#include "core/io/config.h"

namespace wisp {

struct LrSchedule {
  std::string kind = "constant";   // constant | multi_step | step | polynomial | cosine | one_cycle
                                   // | plateau
  std::vector<double> milestones;  // multi_step: epochs at which the rate is multiplied by `factor`
  double factor = 0.1;             // multi_step, step, plateau
  double step_epochs = 30.0;       // step: epochs between multiplications
  double hold_epochs = 0.0;        // step: epochs before the first multiplication; 0: step_epochs
  double power = 1.0;              // polynomial
  double end_factor = 0.0;         // polynomial: factor at the end of the run
  double pct_start = 0.3;          // one_cycle: share of the run before the peak
  double div_factor = 25.0;        // one_cycle: peak / start
  double final_div_factor = 1e4;   // one_cycle: start / end
  int64_t patience = 10;           // plateau: tolerated evaluations in a row without improvement
  double threshold = 1e-4;         // plateau: least improvement, as a share of the best loss
  double min_factor = 0.0;         // plateau: lower bound of the factor
  double warmup_epochs = 0.0;  // length of the linear rise from warmup_start to 1, a further factor
  double warmup_start = 0.1;
  double epochs = 1.0;  // length of the run, where polynomial, cosine and one_cycle end

  /// Binds and checks keys "schedule.…". `epochs` is the length of the run.
  static LrSchedule bind(Config& config, double epochs);

  /// Factor of the base learning rate at `epoch` (with fraction, from 0).
  ///   step:       factor ^ (1 + floor((epoch - hold) / step_epochs)) from epoch `hold` on, else 1
  ///   polynomial: end + (1 - end) (1 - epoch / epochs) ^ power
  ///   cosine:     half a cosine to zero; Loshchilov & Hutter 2017, without restarts
  ///   one_cycle:  half a cosine from 1 / div to 1 at pct_start, then half a cosine to
  ///               1 / (div · final_div). Smith & Topin 2019, with numbers and shape of PyTorch's
  ///               OneCycleLR, whose corners lie a step earlier. The momentum does not change.
  /// Warm-up: Goyal et al. 2017, section 2.2.
  double at(double epoch) const;
};

}  // namespace wisp
