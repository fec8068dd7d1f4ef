#include "core/train/schedule.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

LrSchedule schedule_of(const std::string& keys, double epochs = 10.0) {
  Config config = Config::from_text("[schedule]\n" + keys, "my.toml");
  return LrSchedule::bind(config, epochs);
}

TEST(LrSchedule, MultiStepMultipliesAtEachMilestone) {
  const LrSchedule schedule = schedule_of("kind = 'multi_step'\nmilestones = [2, 4]");
  EXPECT_DOUBLE_EQ(schedule.at(1.99), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(2.0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(4.5), 0.1 * 0.1);
}

TEST(LrSchedule, CosineFallsFromOneToZero) {
  const LrSchedule schedule = schedule_of("kind = 'cosine'", 30.0);
  EXPECT_DOUBLE_EQ(schedule.at(0.0), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(15.0), 0.5);
  EXPECT_NEAR(schedule.at(30.0), 0.0, 1e-15);  // cos(pi) in doubles
  EXPECT_NEAR(schedule.at(31.0), 0.0, 1e-15);
}

TEST(LrSchedule, StepMultipliesEverySoManyEpochs) {
  const LrSchedule schedule = schedule_of("kind = 'step'\nfactor = 0.5\nstep_epochs = 2.0");
  EXPECT_DOUBLE_EQ(schedule.at(1.99), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(2.0), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(5.0), 0.25);
}

TEST(LrSchedule, PolynomialFallsToItsEnd) {
  const LrSchedule schedule = schedule_of("kind = 'polynomial'\npower = 2.0\nend_factor = 0.1");
  EXPECT_DOUBLE_EQ(schedule.at(0.0), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(5.0), 0.1 + 0.9 * 0.25);
  EXPECT_DOUBLE_EQ(schedule.at(10.0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(12.0), 0.1);
}

TEST(LrSchedule, OneCycleRisesThenFallsBelowItsStart) {
  const LrSchedule schedule = schedule_of("kind = 'one_cycle'");
  EXPECT_DOUBLE_EQ(schedule.at(0.0), 1.0 / 25.0);
  EXPECT_DOUBLE_EQ(schedule.at(1.5), 0.52);  // half way from 0.04 to 1
  EXPECT_DOUBLE_EQ(schedule.at(3.0), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(6.5), 0.500002);  // half way from 1 to 4e-6
  EXPECT_NEAR(schedule.at(10.0), 4e-6, 1e-15);   // cos(pi) in doubles
  EXPECT_NEAR(schedule.at(11.0), 4e-6, 1e-15);
}

TEST(LrSchedule, WarmUpRisesLinearlyAndMultiplies) {
  const LrSchedule schedule = schedule_of("warmup_epochs = 4.0\nwarmup_start = 0.2");
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
  const auto refusal = [](const std::string& kind, const std::string& text) {
    return error_of([&] { schedule_of("kind = '" + kind + "'\n" + text); });
  };
  EXPECT_EQ(refusal("step", "step_epochs = 0"),
            "my.toml:3: schedule.step_epochs is 0, expected more than 0");
  EXPECT_EQ(refusal("step", "hold_epochs = -1"),
            "my.toml:3: schedule.hold_epochs is -1, expected 0 or more");
  EXPECT_EQ(refusal("step", "factor = -1"),
            "my.toml:3: schedule.factor is -1, expected more than 0");
  EXPECT_EQ(refusal("constant", "warmup_epochs = -1"),
            "my.toml:3: schedule.warmup_epochs is -1, expected 0 or more");
  EXPECT_EQ(refusal("constant", "warmup_start = -3"),
            "my.toml:3: schedule.warmup_start is -3, expected 0 to 1");
  EXPECT_EQ(refusal("multi_step", "milestones = [-1, 2]"),
            "my.toml:3: schedule.milestones is -1, expected epochs of 0 or more");
  EXPECT_EQ(refusal("multi_step", "milestones = [2, -1]"),
            "my.toml:3: schedule.milestones is -1, expected epochs of 0 or more");
  EXPECT_EQ(refusal("multi_step", "milestones = [2, 1]"),
            "my.toml:3: schedule.milestones must ascend");
  EXPECT_EQ(refusal("polynomial", "power = -1.0"),
            "my.toml:3: schedule.power is -1, expected more than 0");
  EXPECT_EQ(refusal("polynomial", "end_factor = 2"),
            "my.toml:3: schedule.end_factor is 2, expected 0 to 1");
  EXPECT_EQ(refusal("one_cycle", "pct_start = 1"),
            "my.toml:3: schedule.pct_start is 1, expected 0 < share < 1");
  EXPECT_EQ(refusal("one_cycle", "div_factor = 0.5"),
            "my.toml:3: schedule.div_factor is 0.5, expected 1 or more");
  EXPECT_EQ(refusal("one_cycle", "final_div_factor = 0.5"),
            "my.toml:3: schedule.final_div_factor is 0.5, expected 1 or more");
  EXPECT_EQ(refusal("plateau", "patience = -1"),
            "my.toml:3: schedule.patience is -1, expected 0 or more");
  EXPECT_EQ(refusal("plateau", "threshold = 1"),
            "my.toml:3: schedule.threshold is 1, expected 0 <= share < 1");
  EXPECT_EQ(refusal("plateau", "min_factor = 2"),
            "my.toml:3: schedule.min_factor is 2, expected 0 to 1");
  EXPECT_EQ(refusal("plateau", "factor = 1.0"),
            "my.toml:3: schedule.factor is 1, expected 0 < factor < 1");
  EXPECT_EQ(refusal("one_cycle", "warmup_epochs = 1"),
            "my.toml:3: schedule.warmup_epochs is 1, expected 0 with one_cycle, which rises by "
            "itself");
}

TEST(LrSchedule, ForgetsKeysOfOthersWithANotice) {
  Config config = Config::from_text(
      "[schedule]\nkind = 'step'\nfactor = 0.5\npatience = 3\nmilestones = [1]", "my.toml");
  const LrSchedule schedule = LrSchedule::bind(config, 10.0);
  EXPECT_EQ(schedule.notices,
            std::vector<std::string>{"keys of other schedules have no effect with schedule.kind "
                                     "step: schedule.milestones (my.toml:5), schedule.patience "
                                     "(my.toml:4)"});
  EXPECT_FALSE(config.given("schedule.patience"));
  EXPECT_FALSE(config.given("schedule.milestones"));
  EXPECT_TRUE(config.given("schedule.factor"));
}

/// Earlier versions wrote the keys of all kinds, most of them with their defaults.
TEST(LrSchedule, SaysNothingOfIdleDefaults) {
  Config config = Config::from_text(
      "[schedule]\nkind = 'cosine'\nmilestones = []\nfactor = 0.1\npatience = 10", "my.toml");
  EXPECT_EQ(LrSchedule::bind(config, 10.0).notices, std::vector<std::string>{});
  EXPECT_FALSE(config.given("schedule.patience"));
}

/// Another kind that cannot be made from its defaults does no harm.
TEST(LrSchedule, NeedsNoOtherKindToBeMade) {
  static const ScheduleRegistration strict(
      "test_strict", "test: needs its key",
      [](Config& config, double epochs) -> std::unique_ptr<Schedule> {
        double peak = 1e9;
        config.bind("schedule.test_peak", peak, "epoch within the run");
        WISP_CHECK(peak < epochs, "the peak is later than the end");
        return std::make_unique<Schedule>();
      });
  EXPECT_EQ(schedule_of("kind = 'cosine'\ntest_peak = 3").notices.size(), 1u);
  EXPECT_EQ(schedule_of("kind = 'test_strict'\ntest_peak = 3").notices.size(), 0u);
}

}  // namespace
}  // namespace wisp
