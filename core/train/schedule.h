// Learning-rate schedules by name: a factor of the base rate as a pure function of the epoch. The
// factor may depend on losses too (core/train/plateau.h). Any thread may ask a bound schedule.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/registry.h"
#include "core/io/config.h"

namespace wisp {

/// The rule by which a rate falls because the loss does not.
struct PlateauOptions {
  double factor = 0.1;      // of the rate at each fall, in (0, 1)
  int64_t patience = 10;    // tolerated evaluations in a row without improvement
  double threshold = 1e-4;  // least improvement, as a share of the best loss
  double min_factor = 0.0;  // lower bound of the factor
};

struct Schedule {
  /// Factor of the base learning rate, finite and 0 or more, at `epoch` (with fraction, from 0).
  /// All workers ask it at each step, and again when a run goes on. So it depends on nothing else.
  std::function<double(double epoch)> at = [](double) { return 1.0; };
  bool rises = false;                     // from below 1 at the start; a warm-up is then refused
  std::optional<PlateauOptions> plateau;  // a further factor, which needs evaluations
};

/// The factory binds and checks the keys "schedule.…" of its kind. `epochs` is the length of the
/// run, above 0.
using ScheduleRegistry = Registry<Schedule, Config&, double>;
using ScheduleRegistration = Registration<Schedule, Config&, double>;

/// The schedule of a run: one by name, and a warm-up.
struct LrSchedule {
  std::string kind = "constant";
  Schedule of_kind;
  double warmup_epochs = 0.0;  // length of the linear rise from warmup_start to 1, a further factor
  double warmup_start = 0.1;
  std::vector<std::string> notices;  // for the user, a line each

  /// Binds and checks keys "schedule.…". `epochs` is the length of the run. Keys of other schedules
  /// are forgotten with a notice, because `extends` and earlier versions leave them. Throws Error
  /// for an unknown kind and a value out of range.
  static LrSchedule bind(Config& config, double epochs);

  /// Factor of the base learning rate at `epoch`, with the warm-up: Goyal et al. 2017, section 2.2.
  double at(double epoch) const;
};

}  // namespace wisp
