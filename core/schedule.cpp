#include "core/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace wisp {

LrSchedule LrSchedule::bind(Config& config, double epochs) {
  LrSchedule schedule;
  schedule.epochs = epochs;
  config.bind("schedule.kind", schedule.kind,
              "constant, multi_step or cosine (to zero over the run)");
  config.bind("schedule.milestones", schedule.milestones,
              "multi_step: epochs at which the rate is multiplied by factor");
  config.bind("schedule.factor", schedule.factor,
              "multi_step: factor of the rate at each milestone");
  config.bind("schedule.warmup_epochs", schedule.warmup_epochs,
              "epochs of linear rise to the full rate");
  config.bind("schedule.warmup_start", schedule.warmup_start,
              "share of the rate at which the rise begins");
  WISP_CHECK(
      schedule.kind == "constant" || schedule.kind == "multi_step" || schedule.kind == "cosine",
      config.where("schedule.kind"), ": unknown schedule.kind '", schedule.kind,
      "'; known: constant, cosine, multi_step");
  WISP_CHECK(std::is_sorted(schedule.milestones.begin(), schedule.milestones.end()),
             config.where("schedule.milestones"), ": schedule.milestones must ascend");
  WISP_CHECK(schedule.warmup_epochs >= 0.0, config.where("schedule.warmup_epochs"),
             ": schedule.warmup_epochs is ", schedule.warmup_epochs, ", expected 0 or more");
  return schedule;
}

double LrSchedule::at(double epoch) const {
  double rate = 1.0;
  if (kind == "cosine")
    rate = 0.5 * (1.0 + std::cos(std::numbers::pi * std::min(1.0, epoch / epochs)));
  if (kind == "multi_step") {
    for (const double milestone : milestones) rate *= epoch >= milestone ? factor : 1.0;
  }
  if (epoch < warmup_epochs) rate *= warmup_start + (1.0 - warmup_start) * epoch / warmup_epochs;
  return rate;
}

}  // namespace wisp
