#include "core/schedule.h"

#include <gtest/gtest.h>

#include "core/error.h"

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

}  // namespace
}  // namespace wisp
