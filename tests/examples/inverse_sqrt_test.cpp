#include <gtest/gtest.h>

#include <cmath>

#include "core/train/schedule.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

LrSchedule schedule_of(const std::string& keys) {
  Config config = Config::from_text("[schedule]\nkind = 'inverse_sqrt'\n" + keys, "my.toml");
  return LrSchedule::bind(config, 100.0);
}

/// The paper's rate, with d = 512 and 4,000 steps until the peak.
double rate_of_paper(double step) {
  return std::pow(512.0, -0.5) * std::min(std::pow(step, -0.5), step * std::pow(4000.0, -1.5));
}

TEST(InverseSqrt, HasTheShapeOfThePaper) {
  const double steps_per_epoch = 1000.0;
  const LrSchedule schedule = schedule_of("peak_epoch = 4");
  for (const double step : {1.0, 100.0, 3999.0, 4000.0, 4001.0, 16000.0, 100000.0})
    EXPECT_NEAR(schedule.at(step / steps_per_epoch), rate_of_paper(step) / rate_of_paper(4000.0),
                1e-12)
        << step;
  EXPECT_EQ(schedule.at(0.0), 0.0);
}

TEST(InverseSqrt, RefusesWhatItCannotMean) {
  const auto refusal = [](const std::string& keys) { return error_of([&] { schedule_of(keys); }); };
  EXPECT_EQ(refusal("peak_epoch = 0"), "my.toml:3: schedule.peak_epoch is 0, expected more than 0");
  EXPECT_EQ(refusal("warmup_epochs = 2"),
            "my.toml:3: schedule.warmup_epochs is 2, expected 0 with inverse_sqrt, which rises by "
            "itself");
  EXPECT_EQ(schedule_of("milestones = [3]").notices.size(), 1u);
}

TEST(InverseSqrt, TrainsAndGoesOnAsIfTheRunHadNotStopped) {
  const TempDir dir;
  const Overrides keys{"schedule.kind=inverse_sqrt", "schedule.peak_epoch=0.5", "workers=2"};
  tiny_train(dir / "whole", keys);
  tiny_train(dir / "cut", keys + Overrides{"train.max_steps=7"});
  tiny_train(dir / "cut", keys, RunDirectory::Open::resume);
  EXPECT_EQ(checkpoint_content(dir / "cut", 16), checkpoint_content(dir / "whole", 16));
}

}  // namespace
}  // namespace wisp
