#include "compression/ratio_schedule.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

RatioSchedule schedule(const std::string& keys) {
  Config config = Config::from_text("[compression]\n" + keys, "test.toml");
  RatioSchedule result(config);
  config.finish();
  return result;
}

TEST(RatioSchedule, IsConstantWithoutWarmup) {
  EXPECT_EQ(schedule("").at(0.0), 0.001);
  EXPECT_EQ(schedule("ratio = 0.25").at(100.0), 0.25);
}

// Lin et al. 2018, section 3.3: sparsity 75, 93.75, 98.4375, 99.6, 99.9 % over 4 epochs and after.
TEST(RatioSchedule, FollowsThePapersList) {
  const RatioSchedule paper = schedule("warmup = \"list\"");
  EXPECT_EQ(paper.at(0.0), 0.25);
  EXPECT_EQ(paper.at(0.99), 0.25);
  EXPECT_EQ(paper.at(1.0), 0.0625);
  EXPECT_EQ(paper.at(2.5), 0.015625);
  EXPECT_EQ(paper.at(3.999), 0.004);
  EXPECT_EQ(paper.at(4.0), 0.001);
  EXPECT_EQ(paper.at(90.0), 0.001);
}

TEST(RatioSchedule, FitsTheListIntoOneEpoch) {
  const RatioSchedule one = schedule("warmup = \"list\"\nwarmup_epochs = 1");
  EXPECT_EQ(one.at(0.0), 0.25);
  EXPECT_EQ(one.at(0.25), 0.0625);
  EXPECT_EQ(one.at(0.6), 0.015625);
  EXPECT_EQ(one.at(0.99), 0.004);
  EXPECT_EQ(one.at(1.0), 0.001);
}

TEST(RatioSchedule, MayStartDense) {
  const RatioSchedule dense = schedule("warmup = \"list\"\nwarmup_epochs = 5\nwarmup_list = [1.0]");
  EXPECT_EQ(dense.at(4.9), 1.0);
  EXPECT_EQ(dense.at(5.0), 0.001);
}

TEST(RatioSchedule, NeverFallsBelowTheFinalRatio) {
  EXPECT_EQ(schedule("warmup = \"list\"\nratio = 0.01").at(3.0), 0.01);
  EXPECT_EQ(schedule("warmup = \"exponential\"\nratio = 1.0").at(3.0), 1.0);
}

// The authors' code: coeff = ratio^(1 / (epochs + 1)), density coeff^(epoch + 1).
TEST(RatioSchedule, FallsExponentially) {
  const RatioSchedule four = schedule("warmup = \"exponential\"");
  const double expected4[] = {0.2512, 0.0631, 0.01585, 0.00398, 0.001};
  for (int epoch = 0; epoch < 5; ++epoch)
    EXPECT_NEAR(four.at(epoch), expected4[epoch], 5e-5 * expected4[epoch] * 10) << epoch;
  const RatioSchedule five = schedule("warmup = \"exponential\"\nwarmup_epochs = 5");
  const double expected5[] = {0.3162, 0.1, 0.0316, 0.01, 0.00316, 0.001};
  for (int epoch = 0; epoch < 6; ++epoch)  // the table has 3 to 4 digits
    EXPECT_NEAR(five.at(epoch + 0.5), expected5[epoch], 1e-3 * expected5[epoch]) << epoch;
}

TEST(RatioSchedule, HasAPhaseForEachRatio) {
  EXPECT_EQ(schedule("").phases(), std::vector<double>{0.0});
  EXPECT_EQ(schedule("warmup = \"list\"").phases(), (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_EQ(schedule("warmup = \"exponential\"\nwarmup_epochs = 2.5").phases(),
            (std::vector<double>{0, 1, 2, 2.5}));
  for (int tenths = 1; tenths <= 200; ++tenths) {
    for (const size_t entries : {3, 5, 7}) {
      std::string list = "0.5";
      for (size_t i = 1; i < entries; ++i) list += ", 0.25";
      const double epochs = 0.1 * tenths;
      const std::vector<double> phases =
          schedule(
              concat("warmup = \"list\"\nwarmup_epochs = ", epochs, "\nwarmup_list = [", list, "]"))
              .phases();
      ASSERT_EQ(phases.size(), entries + 1) << epochs;
      for (size_t i = 1; i < phases.size(); ++i) EXPECT_LT(phases[i - 1], phases[i]) << epochs;
    }
  }
}

TEST(RatioSchedule, NamesThePlaceOfAWrongValue) {
  EXPECT_EQ(error_of([] { schedule("ratio = 0.0"); }),
            "test.toml:2: compression.ratio is 0, expected 0 < ratio <= 1");
  EXPECT_EQ(error_of([] { schedule("warmup = \"fast\""); }),
            "test.toml:2: compression.warmup is 'fast', expected none, list or exponential");
  EXPECT_EQ(error_of([] { schedule("warmup_list = []"); }),
            "test.toml:2: compression.warmup_list is empty, expected at least one ratio");
  EXPECT_EQ(error_of([] { schedule("warmup_list = [0.5, -1.0]"); }),
            "test.toml:2: compression.warmup_list holds -1, expected ratios above 0");
  EXPECT_EQ(error_of([] { schedule("warmup_epochs = 0"); }),
            "test.toml:2: compression.warmup_epochs is 0, expected more than 0 and at most 10000");
  for (const char* endless : {"inf", "1e300"}) {
    const std::string error =
        error_of([&] { schedule(concat("warmup = \"exponential\"\nwarmup_epochs = ", endless)); });
    EXPECT_NE(error.find("test.toml:3: compression.warmup_epochs is "), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace wisp
