#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/weights_rig.h"

namespace wisp {
namespace {

double gradient(int rank, int64_t step, int64_t i, double x) {
  return (0.5 + 0.25 * rank) * (x - rank) + 0.01 * static_cast<double>(step * i);
}

WeightsRun local_sgd(int64_t period) {
  WeightsRun run;
  run.method = "local_sgd";
  run.keys = {concat("local_sgd.period=", period)};
  run.gradient = gradient;
  return run;
}

TEST(LocalSgd, FollowsItsPaper) {
  for (const int64_t period : {1, 3, 8}) {
    const WeightsHistory history = weights_of(local_sgd(period));
    for (int64_t i = 0; i < 12; ++i) {
      double x[3] = {1.0, 1.0, 1.0};
      for (int64_t t = 0; t < 50; ++t) {
        for (int r = 0; r < 3; ++r) x[r] -= kRigLr * gradient(r, t, i, x[r]);
        if ((t + 1) % period == 0) x[0] = x[1] = x[2] = (x[0] + x[1] + x[2]) / 3.0;
        for (size_t r = 0; r < 3; ++r)  // f32 against f64
          ASSERT_NEAR(history[static_cast<size_t>(t)][r][static_cast<size_t>(i)], x[r], 1e-5) << t;
      }
    }
  }
}

TEST(LocalSgd, WithPeriodOneIsGradientAveraging) {
  const WeightsHistory history = weights_of(local_sgd(1));
  for (int64_t i = 0; i < 12; ++i) {
    double x = 1.0;
    for (int64_t t = 0; t < 50; ++t) {
      double mean = 0.0;
      for (int r = 0; r < 3; ++r) mean += gradient(r, t, i, x) / 3.0;
      x -= kRigLr * mean;
      for (size_t r = 0; r < 3; ++r)  // f32 against f64
        ASSERT_NEAR(history[static_cast<size_t>(t)][r][static_cast<size_t>(i)], x, 1e-5) << t;
    }
  }
}

TEST(LocalSgd, SendsWeightsOnlyWhenTheyAreAveraged) {
  run_weights(local_sgd(4), [](WeightsWorker& worker) {
    if (worker.step < 0) return;
    const bool averages = (worker.step + 1) % 4 == 0;
    const StepCost& cost = worker.sync.cost();
    EXPECT_EQ(cost.bytes_encoded, averages ? 48 : 0);
    EXPECT_EQ(cost.bytes_sent > 48, averages);  // otherwise only the status
  });
}

TEST(LocalSgd, AveragesTheMomentumIfAsked) {
  for (const bool averaged : {false, true}) {
    WeightsRun run = local_sgd(2);
    run.keys.push_back(concat("local_sgd.average_momentum=", averaged ? "true" : "false"));
    run.steps = 2;
    run_weights(run, [&](WeightsWorker& worker) {
      float& momentum = *worker.parameters.state("momentum").data<float>();
      if (worker.step == 0) momentum = static_cast<float>(worker.rank);
      if (worker.step == 1) {
        EXPECT_FLOAT_EQ(momentum, averaged ? 1.0f : static_cast<float>(worker.rank));
      }
    });
  }
}

TEST(LocalSgd, CountsUpdatesNotSteps) {
  WeightsRun run = local_sgd(2);
  run.steps = 3;
  run.loss = [](int rank, int64_t step) {
    return rank == 0 && step == 1 ? std::numeric_limits<double>::infinity() : 1.0;
  };
  const WeightsHistory history = weights_of(run);
  EXPECT_EQ(history[1], history[0]) << "a loss that is not finite skips the step on all";
  EXPECT_NE(history[1][0], history[1][1]);
  EXPECT_EQ(history[2][0], history[2][1]);
}

TEST(LocalSgd, LeavesTheSameBitsHoweverItIsScheduled) {
  WeightsRun run = local_sgd(3);
  const WeightsHistory expected = weights_of(run);
  run.late = true;
  EXPECT_EQ(weights_of(run), expected) << "late streams";
  run.overlap = false;
  EXPECT_EQ(weights_of(run), expected) << "inline";
  run.late = false;
  run.turns = true;
  EXPECT_EQ(weights_of(run), expected) << "turns";
}

TEST(LocalSgd, RefusesAPeriodOfNone) {
  const std::string error = error_of([] { weights_of(local_sgd(0)); });
  EXPECT_NE(error.find("local_sgd.period is 0, expected 1 or more"), std::string::npos) << error;
}

TEST(LocalSgd, NoticesRanksWithOtherPeriods) {
  WeightsRun run = local_sgd(2);
  run.more_keys = [](int rank) {
    return std::vector<std::string>{concat("local_sgd.period=", rank == 1 ? 3 : 2)};
  };
  const std::string error = error_of([&] { weights_of(run); });
  EXPECT_NE(error.find("the ranks' plans of what to exchange differ"), std::string::npos) << error;
}

}  // namespace
}  // namespace wisp
