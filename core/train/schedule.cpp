#include "core/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "core/train/idle_keys.h"

namespace wisp {
namespace {

/// Numbers that a key may have, and their text in messages.
struct Allowed {
  bool (*holds)(double);
  const char* text;
};
constexpr Allowed kPositive{[](double value) { return value > 0.0; }, "more than 0"};
constexpr Allowed kNotNegative{[](double value) { return value >= 0.0; }, "0 or more"};
constexpr Allowed kOneOrMore{[](double value) { return value >= 1.0; }, "1 or more"};
constexpr Allowed kUpToOne{[](double value) { return value >= 0.0 && value <= 1.0; }, "0 to 1"};

/// Binds the number "schedule.NAME". Throws Error unless it is allowed.
template <class T>
T number(Config& config, const std::string& name, T value, const char* meaning,
         const Allowed& allowed) {
  const std::string key = "schedule." + name;
  config.bind(key, value, meaning);
  config.expect(allowed.holds(static_cast<double>(value)), key, value, allowed.text);
  return value;
}

/// Half a cosine from `a` at share 0 to `b` at share 1.
double half_cosine(double a, double b, double share) {
  const double cosine = std::cos(std::numbers::pi * share);
  return a * 0.5 * (1.0 + cosine) + b * 0.5 * (1.0 - cosine);
}

std::unique_ptr<Schedule> schedule_of(std::function<double(double)> at) {
  return std::make_unique<Schedule>(Schedule{.at = std::move(at)});
}

std::unique_ptr<Schedule> make_constant(Config&, double) { return std::make_unique<Schedule>(); }

double bind_factor(Config& config) {
  return number(config, "factor", 0.1, "factor of the rate at each change, above 0", kPositive);
}

std::unique_ptr<Schedule> make_multi_step(Config& config, double) {
  std::vector<double> milestones;
  const std::string key = "schedule.milestones";
  config.bind(key, milestones,
              "epochs at which the rate is multiplied by factor, in ascending order from 0 on");
  for (const double epoch : milestones)
    config.expect(epoch >= 0.0, key, epoch, "epochs of 0 or more");
  WISP_CHECK(std::ranges::is_sorted(milestones), config.where(key), ": ", key, " must ascend");
  return schedule_of([milestones, factor = bind_factor(config)](double epoch) {
    double rate = 1.0;
    for (const double milestone : milestones) rate *= epoch >= milestone ? factor : 1.0;
    return rate;
  });
}

/// factor ^ (1 + floor((epoch - hold) / every)) from epoch `hold` on, else 1.
std::unique_ptr<Schedule> make_step(Config& config, double) {
  const double every =
      number(config, "step_epochs", 30.0, "epochs between multiplications, above 0", kPositive);
  const double given =
      number(config, "hold_epochs", 0.0,
             "epochs before the first multiplication, 0 or more; 0: step_epochs", kNotNegative);
  const double hold = given > 0.0 ? given : every;
  return schedule_of([every, hold, factor = bind_factor(config)](double epoch) {
    return epoch < hold ? 1.0 : std::pow(factor, 1.0 + std::floor((epoch - hold) / every));
  });
}

/// end + (1 - end) (1 - epoch / epochs) ^ power.
std::unique_ptr<Schedule> make_polynomial(Config& config, double epochs) {
  const double power = number(config, "power", 1.0,
                              "exponent of the remaining share of the run, above 0", kPositive);
  const double end = number(config, "end_factor", 0.0,
                            "factor of the rate at the end of the run, in [0, 1]", kUpToOne);
  return schedule_of([power, end, epochs](double epoch) {
    return end + (1.0 - end) * std::pow(1.0 - std::min(1.0, epoch / epochs), power);
  });
}

std::unique_ptr<Schedule> make_cosine(Config&, double epochs) {
  return schedule_of([epochs](double epoch) {
    return 0.5 * (1.0 + std::cos(std::numbers::pi * std::min(1.0, epoch / epochs)));
  });
}

/// Like PyTorch's OneCycleLR, whose corners lie a step earlier. The momentum does not change.
std::unique_ptr<Schedule> make_one_cycle(Config& config, double epochs) {
  const double peak =
      number(config, "pct_start", 0.3, "share of the run until the peak, in (0, 1)",
             Allowed{[](double value) { return value > 0.0 && value < 1.0; }, "0 < share < 1"});
  const double start = 1.0 / number(config, "div_factor", 25.0,
                                    "rate at the peak / rate at the start, 1 or more", kOneOrMore);
  const double end = start / number(config, "final_div_factor", 1e4,
                                    "rate at the start / rate at the end, 1 or more", kOneOrMore);
  auto schedule = schedule_of([peak, start, end, epochs](double epoch) {
    const double share = std::min(1.0, epoch / epochs);
    if (share < peak) return half_cosine(start, 1.0, share / peak);
    return half_cosine(1.0, end, (share - peak) / (1.0 - peak));
  });
  schedule->rises = true;
  return schedule;
}

std::unique_ptr<Schedule> make_plateau(Config& config, double) {
  PlateauOptions options;
  options.factor =
      number(config, "factor", options.factor, "factor of the rate at each change, in (0, 1)",
             Allowed{[](double value) { return value > 0.0 && value < 1.0; }, "0 < factor < 1"});
  options.patience = number(
      config, "patience", options.patience,
      "number of evaluations in a row tolerated without a better loss, 0 or more", kNotNegative);
  options.threshold =
      number(config, "threshold", options.threshold,
             "relative improvement on the best loss above which a loss is better, in [0, 1)",
             Allowed{[](double value) { return value >= 0.0 && value < 1.0; }, "0 <= share < 1"});
  options.min_factor = number(config, "min_factor", options.min_factor,
                              "lowest factor of the rate, in [0, 1]", kUpToOne);
  return std::make_unique<Schedule>(Schedule{.plateau = options});
}

// Here, because a program links this file whenever it binds a schedule.
const ScheduleRegistration constant("constant", "the base rate throughout", make_constant);
const ScheduleRegistration multi_step("multi_step", "falls at given epochs", make_multi_step);
const ScheduleRegistration step("step", "falls every so many epochs", make_step);
const ScheduleRegistration polynomial("polynomial", "falls by a power of the remaining run",
                                      make_polynomial);
const ScheduleRegistration cosine(
    "cosine", "half a cosine to zero; Loshchilov & Hutter 2017, without restarts", make_cosine);
const ScheduleRegistration one_cycle(
    "one_cycle",
    "half a cosine up, half a cosine down; Smith & Topin 2019, shape and numbers of PyTorch's",
    make_one_cycle);
const ScheduleRegistration plateau(
    "plateau", "falls when the loss of the evaluations does not, like PyTorch's ReduceLROnPlateau",
    make_plateau);

}  // namespace

LrSchedule LrSchedule::bind(Config& config, double epochs) {
  LrSchedule run;
  config.bind("schedule.kind", run.kind,
              "learning-rate schedule; `wisp config --reference` has a section for each");
  config.offer("schedule.kind", ScheduleRegistry::instance().names());
  run.warmup_epochs = number(config, "warmup_epochs", run.warmup_epochs,
                             "epochs of linear warm-up to the full rate, 0 or more", kNotNegative);
  run.warmup_start = number(config, "warmup_start", run.warmup_start,
                            "share of the rate at the start of the warm-up, in [0, 1]", kUpToOne);
  const ScheduleRegistry::Entry& entry =
      naming(config.where("schedule.kind"), [&]() -> const ScheduleRegistry::Entry& {
        return ScheduleRegistry::instance().find("schedule.kind", run.kind);
      });
  run.of_kind = *entry.make(config, epochs);
  config.expect(!run.of_kind.rises || run.warmup_epochs == 0.0, "schedule.warmup_epochs",
                run.warmup_epochs, concat("0 with ", run.kind, ", which rises by itself"));
  run.notices =
      forget_idle_keys(config, "schedule", run.kind, keys_of_all<ScheduleRegistry>(epochs));
  return run;
}

double LrSchedule::at(double epoch) const {
  const double rate = of_kind.at(epoch);
  if (epoch >= warmup_epochs) return rate;
  return rate * (warmup_start + (1.0 - warmup_start) * epoch / warmup_epochs);
}

}  // namespace wisp
