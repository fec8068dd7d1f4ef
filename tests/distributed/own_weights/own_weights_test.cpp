#include "distributed/own_weights/own_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/weights_rig.h"

namespace wisp {
namespace {

WeightsRun run_of(int64_t steps) {
  WeightsRun run;
  run.method = "dpsgd";
  run.steps = steps;
  run.gradient = [](int rank, int64_t step, int64_t i, double) {
    return static_cast<double>((rank + 1) * (step + 2) + i % 3);
  };
  return run;
}

TEST(OwnWeights, ConsensusIsTheMeanAndItsDistanceTheSpread) {
  const WeightsRun run = run_of(4);
  const auto weights = weights_of(run).back();
  std::vector<double> mean(weights[0].size());
  double spread = 0.0;
  for (size_t i = 0; i < mean.size(); ++i) {
    for (const auto& own : weights) mean[i] += own[i] / 3.0;
    for (const auto& own : weights) spread += std::pow(own[i] - mean[i], 2) / 3.0;
  }
  run_weights(run, [&](WeightsWorker& worker) {
    if (worker.step < 3) return;
    EXPECT_TRUE(worker.sync.replicas_differ());
    EXPECT_NEAR(worker.sync.consensus_distance(), std::sqrt(spread), 1e-5);
    const Tensor consensus = worker.sync.consensus();
    size_t i = 0;
    for (const Segment& segment : worker.parameters.segments())
      for (int64_t k = 0; k < segment.numel; ++k)
        EXPECT_NEAR(consensus.data<float>()[segment.offset + k], mean[i++], 1e-5);
    EXPECT_EQ(worker.weights(), weights[static_cast<size_t>(worker.rank)]) << "stays its own";
  });
}

TEST(OwnWeights, WorkersBeginWithTheSameWeights) {
  run_weights(run_of(0), [](WeightsWorker& worker) {
    EXPECT_EQ(worker.sync.consensus_distance(), 0.0);
    EXPECT_EQ(worker.sync.updates(), 0);
  });
}

TEST(OwnWeights, StopsAllRanksInTheSameStep) {
  run_weights(run_of(4), [](WeightsWorker& worker) {
    EXPECT_EQ(worker.outcome, worker.step == 2   ? Outcome::stop
                              : worker.step == 3 ? Outcome::stop
                                                 : Outcome::applied);
    if (worker.step == 1 && worker.rank == 1) worker.sync.request_stop();
    EXPECT_EQ(worker.sync.updates(), worker.step + 1) << "the last update is applied";
  });
}

TEST(OwnWeights, ClipsEveryWorkersOwnGradient) {
  WeightsRun run = run_of(1);
  run.clip.norm = 2.0;
  run_weights(run, [](WeightsWorker& worker) {
    if (worker.step < 0) return;
    double squares = 0.0;
    for (const float x : worker.weights()) squares += std::pow((x - 1.0f) / kRigLr, 2);
    EXPECT_NEAR(std::sqrt(squares), 2.0, 1e-5) << "the bound, whatever the number of workers";
  });
}

TEST(OwnWeights, AGradientThatIsNotFiniteCountsAsZeroOnItsWorkerAlone) {
  WeightsRun run = run_of(1);
  run.gradient = [](int rank, int64_t, int64_t i, double) {
    return rank == 1 && i == 0 ? std::nan("") : 1.0;
  };
  run_weights(run, [](WeightsWorker& worker) {
    if (worker.step < 0) return;
    const std::vector<float> weights = worker.weights();
    const float moved = 1.0f - static_cast<float>(kRigLr);
    EXPECT_EQ(weights.front(), worker.rank == 1 ? 1.0f : moved);
    EXPECT_EQ(weights.back(), moved) << "the other segment";
    EXPECT_EQ(worker.sync.cost().nonfinite.size(), worker.rank == 1 ? 1u : 0u);
    EXPECT_EQ(worker.outcome, Outcome::applied);
  });
}

TEST(OwnWeights, ARankThatFailsEndsTheOthersWithItsCause) {
  for (const char* method : {"dpsgd", "choco", "local_sgd"}) {
    WeightsRun run = run_of(6);
    run.method = method;
    const std::string error = error_of([&] {
      run_weights(run, [](WeightsWorker& worker) {
        if (worker.step == 2 && worker.rank == 1) throw Error("out of luck");
      });
    });
    EXPECT_NE(error.find("rank 1: out of luck"), std::string::npos) << error;
  }
}

TEST(OwnWeights, AGradientThatNeverCameIsNamed) {
  WeightsRun run = run_of(1);
  const std::string error = error_of([&] {
    run_weights(run, [](WeightsWorker& worker) {
      worker.sync.begin({0, 0.0, 0.1});
      Tensor loss({1}, DType::f32);
      *loss.data<float>() = 1.0f;
      worker.sync.forward_done(loss);
      worker.parameters.ready(0);
      worker.sync.before_update();
    });
  });
  EXPECT_NE(error.find("p0"), std::string::npos) << error;
}

}  // namespace
}  // namespace wisp
