#include "apps/setup/replica.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/counting_communicator.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

using Weights = std::vector<std::vector<float>>;

Weights weights(const Overrides& overrides) {
  return weights_after<float>(tiny_config(Overrides{"workers=4"} + overrides), 4, 6);
}

class EveryMethod : public testing::TestWithParam<std::string> {};

TEST_P(EveryMethod, LeavesTheSameBitsHoweverTheStepIsScheduled) {
  const Overrides method = method_overrides(GetParam());
  const Weights expected = weights(method);
  for (const std::vector<float>& own : expected) EXPECT_EQ(own, expected[0]);
  EXPECT_EQ(weights(method), expected) << "repeated";
  EXPECT_EQ(weights(method + Overrides{"compression.overlap=false"}), expected) << "inline";
  EXPECT_EQ(weights(method + Overrides{"turns=true"}), expected) << "turns";
  EXPECT_EQ(weights(method + Overrides{"data.threads=0"}), expected) << "no loader threads";
  EXPECT_EQ(weights(method + Overrides{"data.threads=3"}), expected) << "three loader threads";
  EXPECT_EQ(weights(method + Overrides{"compression.bucket_bytes=1000000"}), expected)
      << "one bucket";
}

INSTANTIATE_TEST_SUITE_P(Replica, EveryMethod, testing::ValuesIn(shipped_methods()),
                         [](const auto& parameter) { return parameter.param; });

TEST(Replica, LeavesTheSameBitsWithSquaresOfMicroBatches) {
  const Overrides run = method_overrides("variance") + Overrides{"train.accumulate=4"};
  const Weights expected = weights(run);
  for (const std::vector<float>& own : expected) EXPECT_EQ(own, expected[0]);
  EXPECT_EQ(weights(run + Overrides{"compression.overlap=false"}), expected) << "inline";
  EXPECT_EQ(weights(run + Overrides{"turns=true"}), expected) << "turns";
  EXPECT_EQ(weights(run + Overrides{"compression.bucket_bytes=1000000"}), expected) << "one bucket";
}

Config resnet8_config(const Overrides& overrides) {
  return Config::from_text(
      "threads = 1\ndata.name = \"synthetic\"\ndata.train_count = 32\ndata.test_count = 8\n"
      "model.name = \"resnet_cifar\"\nmodel.depth = 8\ntrain.batch = 16\n",
      "resnet.toml", overrides);
}

TEST(Replica, ResNetLeavesTheSameBitsInlineAndOverlapped) {
  const Overrides dgc = {"workers=4", "compression.method=dgc", "compression.ratio=0.01"};
  const auto run = [&](const Overrides& overrides) {
    return weights_after<float>(resnet8_config(dgc + overrides), 4, 3);
  };
  const Weights expected = run({});
  EXPECT_EQ(run({"compression.overlap=false"}), expected);
  EXPECT_EQ(run({"turns=true"}), expected);
}

/// Overrides for bf16 on the reference backend, and on the library if the CPU has bf16.
std::vector<Overrides> bf16_backends() {
  std::vector<Overrides> backends = {{"train.precision=bf16", "train.backend=reference"}};
  if (missing_for(DType::bf16).empty()) backends.push_back({"train.precision=bf16"});
  return backends;
}

TEST(Replica, Bf16LeavesTheSameBitsHoweverTheStepIsScheduled) {
  for (const Overrides& bf16 : bf16_backends()) {
    for (const char* method : {"none", "topk", "dgc"}) {
      const Overrides run = bf16 + method_overrides(method);
      const Weights expected = weights(run);
      EXPECT_EQ(weights(run), expected) << method << ", repeated";
      EXPECT_EQ(weights(run + Overrides{"compression.overlap=false"}), expected) << method;
      EXPECT_EQ(weights(run + Overrides{"turns=true"}), expected) << method << ", turns";
    }
  }
}

TEST(Replica, Bf16KeepsParametersGradientsAndStatisticsInF32) {
  for (const Overrides& bf16 : bf16_backends()) {
    with_replicas(resnet8_config(bf16 + Overrides{"workers=2"}), [](ReplicaTest& test) {
      test.steps(0, 2);
      for (const SavedState& saved : test.replica.state()) {
        const DType dtype = saved.tensor.dtype();
        EXPECT_NE(dtype, DType::bf16) << saved.name;
        if (saved.name.rfind("weight/", 0) == 0) {
          EXPECT_EQ(dtype, DType::f32) << saved.name;
        }
      }
      const FlatParameters& parameters = test.replica.parameters();
      EXPECT_EQ(parameters.grad().dtype(), DType::f32);
      int64_t finer_than_bf16 = 0;
      for (int64_t i = 0; i < parameters.numel(); ++i)
        finer_than_bf16 += (float_bits(parameters.grad().data<float>()[i]) & 0xffffu) != 0;
      EXPECT_GT(finer_than_bf16, parameters.numel() / 2) << "weight gradients are not rounded";
    });
  }
}

TEST(Replica, Bf16FollowsF32) {
  const auto run = [](const Overrides& overrides, int64_t steps = 2) {
    const Overrides slow = {"optimizer.lr=0.01"};
    return weights_after<float>(resnet8_config(slow + overrides), 1, steps)[0];
  };
  const std::vector<float> before = run({}, 0);
  const std::vector<float> f32 = run({});
  for (const Overrides& bf16 : bf16_backends()) {
    const std::vector<float> found = run(bf16);
    double error = 0.0, moved = 0.0;
    for (size_t i = 0; i < f32.size(); ++i) {
      error += std::pow(static_cast<double>(found[i] - f32[i]), 2);
      moved += std::pow(static_cast<double>(f32[i] - before[i]), 2);
    }
    EXPECT_GT(error, 0.0);
    // The bound is relative to the change by two steps. The error comes from roundings through 8
    // layers and back, 3e-6 squared, and from flipped ReLUs.
    EXPECT_LT(error, 0.02 * moved);
  }
}

TEST(Replica, FourWorkersOfBEqualOneWorkerOf4B) {
  const Overrides f64 = {"train.precision=f64", "clip.norm=1.0"};
  const auto one = weights_after<double>(tiny_config(f64), 1, 8);
  const auto four = weights_after<double>(tiny_config(f64 + Overrides{"workers=4"}), 4, 8);
  double largest = 0.0;
  for (const std::vector<double>& own : four) {
    ASSERT_EQ(own.size(), one[0].size());
    for (size_t i = 0; i < own.size(); ++i)
      largest = std::max(largest, std::abs(own[i] - one[0][i]));
  }
  EXPECT_LT(largest, 1e-6);  // f64 over 8 steps, with sums in another order
}

TEST(Replica, MicroBatchesEqualOneBatch) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    const Overrides f64 = {"train.precision=f64", "workers=2", "optimizer.lr=0.01",
                           std::string("optimizer.kind=") + optimizer};
    const auto whole = weights_after<double>(tiny_config(f64), 2, 8);
    // each step has the same samples in another cut
    const auto parts =
        weights_after<double>(tiny_config(f64 + Overrides{"train.accumulate=4"}), 2, 8);
    double largest = 0.0;
    for (size_t i = 0; i < whole[0].size(); ++i)
      largest = std::max(largest, std::abs(whole[0][i] - parts[0][i]));
    EXPECT_LT(largest, 1e-9) << optimizer;  // f64, with sums in another order
  }
}

TEST(Replica, SendsNothingBeforeTheLastMicroBatch) {
  for (const char* overlap : {"true", "false"}) {
    Prepared run(tiny_config(
        {"workers=2", "train.accumulate=4", std::string("compression.overlap=") + overlap}));
    run.load();
    MemoryPool pool;
    run_workers(2, {.threads = 1}, [&](Worker& worker) {
      CountingCommunicator counting(worker.communicator);
      Worker counted{worker.rank, worker.threads, counting, worker.turns};
      Replica replica(run, pool, counted);
      const std::unique_ptr<Loader> loader = run.loader(Split::train, worker.rank);
      loader->start_epoch(0);
      for (int64_t step = 0; step < 3; ++step) {
        const int64_t before = counting.collectives();
        int batches = 0;
        replica.step(step, 0.0, [&] {
          EXPECT_EQ(counting.collectives(), before) << "micro-batch " << batches;
          ++batches;
          return *loader->next();
        });
        EXPECT_EQ(batches, 4);
        EXPECT_GT(counting.collectives(), before);
      }
    });
  }
}

TEST(Replica, EndsARunWhoseLossStaysNonFinite) {
  const Overrides wild = {"optimizer.lr=1e30", "train.nonfinite_max=3", "workers=2"};
  const std::string error = error_of(
      [&] { with_replicas(tiny_config(wild), [](ReplicaTest& test) { test.steps(0, 12); }); });
  EXPECT_NE(error.find("the loss was not finite in 3 steps in a row"), std::string::npos) << error;
}

}  // namespace
}  // namespace wisp
