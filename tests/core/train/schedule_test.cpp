#include "core/train/schedule.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

TEST(LrSchedule, MultiStepMultipliesAtEachMilestone) {
  const LrSchedule schedule{.kind = "multi_step", .milestones = {2.0, 4.0}, .factor = 0.1};
  EXPECT_DOUBLE_EQ(schedule.at(1.99), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(2.0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(4.5), 0.1 * 0.1);
}

TEST(LrSchedule, CosineFallsFromOneToZero) {
  const LrSchedule schedule{.kind = "cosine", .epochs = 30.0};
  EXPECT_DOUBLE_EQ(schedule.at(0.0), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(15.0), 0.5);
  EXPECT_NEAR(schedule.at(30.0), 0.0, 1e-15);  // cos(pi) in doubles
  EXPECT_NEAR(schedule.at(31.0), 0.0, 1e-15);
}

TEST(LrSchedule, StepMultipliesEverySoManyEpochs) {
  const LrSchedule schedule{.kind = "step", .factor = 0.5, .step_epochs = 2.0};
  EXPECT_DOUBLE_EQ(schedule.at(1.99), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(2.0), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(5.0), 0.25);
}

TEST(LrSchedule, PolynomialFallsToItsEnd) {
  const LrSchedule schedule{.kind = "polynomial", .power = 2.0, .end_factor = 0.1, .epochs = 10.0};
  EXPECT_DOUBLE_EQ(schedule.at(0.0), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(5.0), 0.1 + 0.9 * 0.25);
  EXPECT_DOUBLE_EQ(schedule.at(10.0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(12.0), 0.1);
}

TEST(LrSchedule, OneCycleRisesThenFallsBelowItsStart) {
  const LrSchedule schedule{.kind = "one_cycle", .epochs = 10.0};
  EXPECT_DOUBLE_EQ(schedule.at(0.0), 1.0 / 25.0);
  EXPECT_DOUBLE_EQ(schedule.at(1.5), 0.52);  // half way from 0.04 to 1
  EXPECT_DOUBLE_EQ(schedule.at(3.0), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(6.5), 0.500002);  // half way from 1 to 4e-6
  EXPECT_NEAR(schedule.at(10.0), 4e-6, 1e-15);   // cos(pi) in doubles
  EXPECT_NEAR(schedule.at(11.0), 4e-6, 1e-15);
}

TEST(LrSchedule, WarmUpRisesLinearlyAndMultiplies) {
  const LrSchedule schedule{.warmup_epochs = 4.0, .warmup_start = 0.2};
  EXPECT_DOUBLE_EQ(schedule.at(0.0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(2.0), 0.6);
  EXPECT_DOUBLE_EQ(schedule.at(4.0), 1.0);
}

TEST(LrSchedule, RefusesAnUnknownKindAndNamesTheKnownOnes) {
  Config config = Config::from_text("schedule.kind = \"stairs\"", "test.toml");
  try {
    LrSchedule::bind(config, 10.0);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cosine"), std::string::npos) << error.what();
  }
}

TEST(LrSchedule, RefusesWhatIsOutOfRange) {
  const auto refusal = [](const std::string& text) {
    Config config = Config::from_text("[schedule]\n" + text, "my.toml");
    return error_of([&] { LrSchedule::bind(config, 10.0); });
  };
  EXPECT_EQ(refusal("step_epochs = 0\n"),
            "my.toml:2: schedule.step_epochs is 0, expected more than 0");
  EXPECT_EQ(refusal("factor = -1\n"), "my.toml:2: schedule.factor is -1, expected more than 0");
  EXPECT_EQ(refusal("warmup_start = -3\n"),
            "my.toml:2: schedule.warmup_start is -3, expected 0 to 1");
  EXPECT_EQ(refusal("milestones = [-1, 2]\n"),
            "my.toml:2: schedule.milestones is -1, expected epochs of 0 or more");
  EXPECT_EQ(refusal("power = -1.0\n"), "my.toml:2: schedule.power is -1, expected more than 0");
  EXPECT_EQ(refusal("end_factor = 2\n"), "my.toml:2: schedule.end_factor is 2, expected 0 to 1");
  EXPECT_EQ(refusal("pct_start = 1\n"),
            "my.toml:2: schedule.pct_start is 1, expected 0 < share < 1");
  EXPECT_EQ(refusal("div_factor = 0.5\n"),
            "my.toml:2: schedule.div_factor is 0.5, expected 1 or more");
  EXPECT_EQ(refusal("patience = -1\n"), "my.toml:2: schedule.patience is -1, expected 0 or more");
  EXPECT_EQ(refusal("kind = \"plateau\"\nfactor = 1.0\n"),
            "my.toml:3: schedule.factor is 1, expected 0 < factor < 1 with plateau");
  EXPECT_EQ(refusal("kind = \"one_cycle\"\nwarmup_epochs = 1\n"),
            "my.toml:3: schedule.warmup_epochs is 1, expected 0 with one_cycle, which rises by "
            "itself");
}

}  // namespace
}  // namespace wisp
