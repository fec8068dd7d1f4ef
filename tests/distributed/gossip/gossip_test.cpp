// Tests that hold for all gossip methods.
#include "distributed/gossip/gossip.h"

#include <gtest/gtest.h>

#include "distributed/exchange/wire_header.h"
#include "tests/support/error_of.h"
#include "tests/support/gossip_run.h"

namespace wisp {
namespace {

/// A unit represents zeros only if its code does. Otherwise messages move rows that no worker
/// changed.
TEST(Gossip, KeepsNoZerosIfItsCodeDoesNot) {
  const auto mixing = std::make_shared<Mixing>("ring", 2);
  const auto traits_of = [&](const std::string& name) {
    Config config;
    const std::shared_ptr<const Code> code =
        CodeRegistry::instance().find("code", name).make(config, {});
    return ToldUnit(nullptr, mixing, code, false).traits();
  };
  EXPECT_FALSE(traits_of("ef_signsgd").represents_zero);
  EXPECT_TRUE(traits_of("topk").represents_zero);
}

class EveryGossip : public testing::TestWithParam<const char*> {};

TEST_P(EveryGossip, LeavesTheSameBitsHoweverItIsScheduled) {
  const bool selects = std::string(GetParam()) != "ecd";
  WeightsRun run = gossip(GetParam(), selects ? "topk" : "fp16");
  if (selects) run.keys.push_back("compression.ratio=0.5");
  run.steps = 12;
  const WeightsHistory expected = weights_of(run);
  EXPECT_EQ(weights_of(run), expected) << "repeated";
  run.bucket_bytes = 1 << 20;
  EXPECT_EQ(weights_of(run), expected) << "one bucket";
  run.overlap = false;
  EXPECT_EQ(weights_of(run), expected) << "inline";
  run.turns = true;
  EXPECT_EQ(weights_of(run), expected) << "turns";
  run.overlap = run.turns = false;
  run.late = true;
  EXPECT_EQ(weights_of(run), expected) << "late streams";
  run.overlap = true;
  EXPECT_EQ(weights_of(run), expected) << "late streams, overlapped";
}

TEST_P(EveryGossip, GoesOnAfterASkippedStepAsIfItHadNotBeen) {
  WeightsRun run = gossip(GetParam(), "none");
  run.steps = 10;
  const WeightsHistory undisturbed = weights_of(run);
  run.loss = [](int rank, int64_t step) {
    return rank == 2 && (step == 4 || step == 5) ? std::nan("") : 1.0;
  };
  const WeightsHistory history = weights_of(run);
  EXPECT_EQ(history[4], history[3]);
  EXPECT_EQ(history[5], history[3]);
  for (size_t t = 6; t < history.size(); ++t) EXPECT_EQ(history[t], undisturbed[t - 2]) << t;
}

TEST_P(EveryGossip, SendsWhatItsCodeSaysToEachNeighbour) {
  for (const char* code : {"none", "fp16"}) {
    WeightsRun run = gossip(GetParam(), code);
    run.steps = 3;
    const Mixing mixing(kGraph, 4);
    run_weights(run, [&](WeightsWorker& worker) {
      if (worker.step < 0) return;
      const int64_t payload = kNumel * (std::string(code) == "none" ? 4 : 2);
      const auto degree = static_cast<int64_t>(mixing.neighbours(worker.rank).size());
      const StepCost& cost = worker.sync.cost();
      // step 0 sends nothing, as all know the first weights; later, two buckets have a header each
      const int64_t told = worker.step == 0 ? 0 : payload + 2 * kHeaderBytes;
      EXPECT_EQ(cost.bytes_encoded, told);
      EXPECT_EQ(cost.bytes_sent, degree * told + 24);  // 24: all-reduce of the 16-byte status
      EXPECT_EQ(cost.bytes_received, degree * told + 24);
      EXPECT_EQ(cost.bytes_raw, kNumel * 4);
    });
  }
}

TEST_P(EveryGossip, WorksAlone) {
  WeightsRun run = gossip(GetParam(), "none", "ring");
  run.workers = 1;
  const WeightsHistory history = weights_of(run);
  double x = 1.0;
  for (const auto& weights : history) {
    x -= kRigLr * gossip_gradient(0, 0, 0, x);
    EXPECT_NEAR(weights[0][0], x, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Gossip, EveryGossip, testing::Values("dpsgd", "dcd", "ecd", "choco"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(Gossip, AUnitThatWouldSendMoreThanExactNumbersIsExact) {
  for (const char* ratio : {"0.75", "1.0"}) {  // 6 bytes or more per value of 4; 1.0: warm-up
    WeightsRun run = gossip("choco", "topk");
    run.keys.push_back(concat("compression.ratio=", ratio));
    run.guard = true;
    run.steps = 2;
    run_weights(run, [&](WeightsWorker& worker) {
      if (worker.step == 1) {
        EXPECT_EQ(worker.sync.cost().bytes_encoded, kNumel * 4 + 2 * kHeaderBytes) << ratio;
      }
    });
  }
}

TEST(Gossip, RefusesMethodsThatAreNoCodes) {
  const std::string error = error_of([] { weights_of(gossip("choco", "dgc")); });
  EXPECT_NE(error.find("gossip.code names 'dgc', which is no code"), std::string::npos) << error;
  EXPECT_NE(error.find("fp16, "), std::string::npos) << error;
}

TEST(Gossip, RefusesKeysThatMeanNothingToIt) {
  Config config =
      Config::from_text("", "run.toml", std::vector<std::string>{"compression.probe_every=5"});
  int64_t probe_every = 0;
  config.bind("compression.probe_every", probe_every, "");
  const std::string error = error_of(
      [&] { SynchronizerRegistry::instance().find("synchronizer", "dpsgd").make(config, {}); });
  EXPECT_NE(error.find("compression.probe_every = 5"), std::string::npos) << error;
}

TEST(Gossip, NoticesRanksWithOtherGraphs) {
  WeightsRun run = gossip("dpsgd", "none", "ring");
  run.more_keys = [](int rank) {
    return rank == 3 ? std::vector<std::string>{"gossip.graph=complete"}
                     : std::vector<std::string>();
  };
  const std::string error = error_of([&] { weights_of(run); });
  EXPECT_NE(error.find("the ranks' plans of what to exchange differ"), std::string::npos) << error;
}

/// Damage: a flipped bit in the header, one in the numbers, and a wrong size.
TEST(Gossip, ADamagedMessageEndsTheRunWithStepBucketAndSender) {
  const auto ends_with = [](WeightsRun run, int64_t byte, const std::string& what) {
    run.workers = 2;
    run.steps = 4;
    run.damage = [byte](int call, std::span<const Bytes> in) {
      if (call == 0) in[0].data[byte] ^= std::byte{0x40};
    };
    const std::string error = error_of([&] { weights_of(run); });
    EXPECT_NE(error.find(", bucket 0: " + what), std::string::npos) << run.method << ": " << error;
    EXPECT_NE(error.find("step "), std::string::npos) << run.method << ": " << error;
  };
  for (const char* method : {"dpsgd", "dcd", "ecd", "choco"}) {
    ends_with(gossip(method, "none", "ring"), 5, "the message of rank 0 ");
    ends_with(gossip(method, "none", "ring"), kHeaderBytes + 3, "the message of rank 0 ");
  }
  WeightsRun sparse = gossip("choco", "topk", "ring");
  sparse.keys.push_back("compression.ratio=0.3");
  ends_with(sparse, 3, "rank 0 announced ");
}

}  // namespace
}  // namespace wisp
