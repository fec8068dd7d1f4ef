#include "core/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/error.h"

namespace wisp {
namespace {

constexpr const char* kKinds[] = {"constant", "cosine",     "multi_step", "one_cycle",
                                  "plateau",  "polynomial", "step"};

/// Half a cosine from `a` at share 0 to `b` at share 1.
double half_cosine(double a, double b, double share) {
  const double cosine = std::cos(std::numbers::pi * share);
  return a * 0.5 * (1.0 + cosine) + b * 0.5 * (1.0 - cosine);
}

/// Number of multiplications that "step" has made.
double steps(const LrSchedule& s, double epoch) {
  const double hold = s.hold_epochs > 0.0 ? s.hold_epochs : s.step_epochs;
  return epoch < hold ? 0.0 : 1.0 + std::floor((epoch - hold) / s.step_epochs);
}

double one_cycle(const LrSchedule& s, double share) {
  const double start = 1.0 / s.div_factor;
  if (share < s.pct_start) return half_cosine(start, 1.0, share / s.pct_start);
  return half_cosine(1.0, start / s.final_div_factor, (share - s.pct_start) / (1.0 - s.pct_start));
}

void bind_keys(Config& config, LrSchedule& s) {
  config.bind("schedule.kind", s.kind,
              "learning-rate schedule: constant, multi_step, step, polynomial, cosine (to zero), "
              "one_cycle or plateau");
  config.bind("schedule.milestones", s.milestones,
              "multi_step: epochs at which the rate is multiplied by factor, in ascending order "
              "from 0 on");
  config.bind("schedule.factor", s.factor,
              "multi_step, step, plateau: factor of the rate at each change, above 0");
  config.bind("schedule.step_epochs", s.step_epochs,
              "step: epochs between multiplications, above 0");
  config.bind("schedule.hold_epochs", s.hold_epochs,
              "step: epochs before the first multiplication, 0 or more; 0: step_epochs");
  config.bind("schedule.power", s.power,
              "polynomial: exponent of the remaining share of the run, above 0");
  config.bind("schedule.end_factor", s.end_factor,
              "polynomial: factor of the rate at the end of the run, in [0, 1]");
  config.bind("schedule.pct_start", s.pct_start,
              "one_cycle: share of the run until the peak, in (0, 1)");
  config.bind("schedule.div_factor", s.div_factor,
              "one_cycle: rate at the peak / rate at the start, 1 or more");
  config.bind("schedule.final_div_factor", s.final_div_factor,
              "one_cycle: rate at the start / rate at the end, 1 or more");
  config.bind("schedule.patience", s.patience,
              "plateau: number of evaluations in a row tolerated without a better loss, 0 or more");
  config.bind("schedule.threshold", s.threshold,
              "plateau: relative improvement on the best loss above which a loss is better, in [0, "
              "1)");
  config.bind("schedule.min_factor", s.min_factor, "plateau: lowest factor of the rate, in [0, 1]");
  config.bind("schedule.warmup_epochs", s.warmup_epochs,
              "epochs of linear warm-up to the full rate, 0 or more");
  config.bind("schedule.warmup_start", s.warmup_start,
              "share of the rate at the start of the warm-up, in [0, 1]");
}

void check(const Config& config, const LrSchedule& s) {
  const auto expect = [&](bool holds, const char* name, const auto& value, const char* range) {
    const std::string key = std::string("schedule.") + name;
    WISP_CHECK(holds, config.where(key), ": ", key, " is ", value, ", expected ", range);
  };
  std::string known;
  for (const char* kind : kKinds) known += (known.empty() ? "" : ", ") + std::string(kind);
  WISP_CHECK(std::find(std::begin(kKinds), std::end(kKinds), s.kind) != std::end(kKinds),
             config.where("schedule.kind"), ": unknown schedule.kind '", s.kind,
             "'; known: ", known);
  expect(std::ranges::all_of(s.milestones, [](double epoch) { return epoch >= 0.0; }), "milestones",
         s.milestones.empty() ? 0.0 : s.milestones.front(), "epochs of 0 or more");
  WISP_CHECK(std::is_sorted(s.milestones.begin(), s.milestones.end()),
             config.where("schedule.milestones"), ": schedule.milestones must ascend");
  expect(s.step_epochs > 0.0, "step_epochs", s.step_epochs, "more than 0");
  expect(s.hold_epochs >= 0.0, "hold_epochs", s.hold_epochs, "0 or more");
  expect(s.power > 0.0, "power", s.power, "more than 0");
  expect(s.end_factor >= 0.0 && s.end_factor <= 1.0, "end_factor", s.end_factor, "0 to 1");
  expect(s.pct_start > 0.0 && s.pct_start < 1.0, "pct_start", s.pct_start, "0 < share < 1");
  expect(s.div_factor >= 1.0, "div_factor", s.div_factor, "1 or more");
  expect(s.final_div_factor >= 1.0, "final_div_factor", s.final_div_factor, "1 or more");
  expect(s.patience >= 0, "patience", s.patience, "0 or more");
  expect(s.threshold >= 0.0 && s.threshold < 1.0, "threshold", s.threshold, "0 <= share < 1");
  expect(s.min_factor >= 0.0 && s.min_factor <= 1.0, "min_factor", s.min_factor, "0 to 1");
  expect(s.factor > 0.0, "factor", s.factor, "more than 0");
  expect(s.kind != "plateau" || (s.factor > 0.0 && s.factor < 1.0), "factor", s.factor,
         "0 < factor < 1 with plateau");
  expect(s.warmup_epochs >= 0.0, "warmup_epochs", s.warmup_epochs, "0 or more");
  expect(s.warmup_start >= 0.0 && s.warmup_start <= 1.0, "warmup_start", s.warmup_start, "0 to 1");
  expect(s.kind != "one_cycle" || s.warmup_epochs == 0.0, "warmup_epochs", s.warmup_epochs,
         "0 with one_cycle, which rises by itself");
}

}  // namespace

LrSchedule LrSchedule::bind(Config& config, double epochs) {
  LrSchedule schedule;
  schedule.epochs = epochs;
  bind_keys(config, schedule);
  check(config, schedule);
  return schedule;
}

double LrSchedule::at(double epoch) const {
  const double share = std::min(1.0, epoch / epochs);
  double rate = 1.0;
  if (kind == "cosine") rate = 0.5 * (1.0 + std::cos(std::numbers::pi * share));
  if (kind == "polynomial") rate = end_factor + (1.0 - end_factor) * std::pow(1.0 - share, power);
  if (kind == "one_cycle") rate = one_cycle(*this, share);
  if (kind == "step") rate = std::pow(factor, steps(*this, epoch));
  if (kind == "multi_step") {
    for (const double milestone : milestones) rate *= epoch >= milestone ? factor : 1.0;
  }
  if (epoch < warmup_epochs) rate *= warmup_start + (1.0 - warmup_start) * epoch / warmup_epochs;
  return rate;
}

}  // namespace wisp
