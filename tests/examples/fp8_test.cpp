#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "apps/train/trainer.h"
#include "distributed/exchange/wire_header.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_replica.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

ReplicaOptions fp8_options() {
  ReplicaOptions options;
  options.methods = [] {
    std::vector<Method> methods;
    methods.push_back({"fp8", make_method("fp8", ""), Scope::layer});
    return methods;
  };
  return options;
}

TEST(Fp8, SendsAByteForEachElementInAnyScope) {
  for (const auto& fields :
       {layer_fields({1000, 7, 64}), std::vector<Field>{joined_field({1000, 7, 64})}}) {
    UnitRig rig(fields, make_method("fp8", ""));
    const Message message = rig.compressor->message(rig.unit.spec, {}, 0);
    EXPECT_EQ(message.kind, Collective::all_gather);
    EXPECT_EQ(message.bytes, 1071);
    EXPECT_FALSE(message.variable);
    for (int64_t i = 0; i < rig.unit.gradient.numel(); ++i)
      rig.gradient()[i] = static_cast<float>(i % 9 - 4);  // E5M2 holds these
    const std::vector<float> given(rig.gradient(), rig.gradient() + rig.unit.gradient.numel());
    rig.decode({}, {rig.encode({})});
    EXPECT_EQ(std::vector<float>(rig.gradient(), rig.gradient() + given.size()), given);
  }
}

TEST(Fp8, CutsTowardsZeroAndKeepsTheRest) {
  UnitRig rig(layer_fields({4}), make_method("fp8", ""));
  const float given[] = {1.3f, -0.9f, 1e9f, 1e-6f};
  const float sent[] = {1.25f, -0.875f, 57344.0f, 0.0f};
  std::copy_n(given, 4, rig.gradient());
  rig.decode({}, {rig.encode({})});
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rig.gradient()[i], sent[i]);
    EXPECT_EQ(rig.residual()[i], given[i] - sent[i]);
  }
}

TEST(Fp8, AddsTheWorkersPayloads) {
  UnitRig rig(layer_fields({3}), make_method("fp8", ""));
  std::vector<PayloadBytes> payloads;
  for (const float scale : {1.0f, -4.0f}) {
    for (int64_t i = 0; i < 3; ++i) rig.gradient()[i] = scale * static_cast<float>(i);
    payloads.push_back(rig.encode({}));
  }
  rig.decode({}, payloads);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(rig.gradient()[i], -3.0f * static_cast<float>(i));
}

TEST(Fp8, SendsZerosAndKeepsItsResidualIfTheGradientIsNotFinite) {
  UnitRig rig(layer_fields({3}), make_method("fp8", ""));
  std::fill_n(rig.residual(), 3, 2.0f);
  std::fill_n(rig.gradient(), 3, std::numeric_limits<float>::quiet_NaN());
  rig.unit.finite = false;
  rig.decode({}, {rig.encode({})});
  EXPECT_EQ(std::vector<float>(rig.gradient(), rig.gradient() + 3), std::vector<float>(3, 0.0f));
  EXPECT_EQ(std::vector<float>(rig.residual(), rig.residual() + 3), std::vector<float>(3, 2.0f));
}

TEST(Fp8, RefusesAPayloadOfTheWrongSize) {
  UnitRig rig(layer_fields({3}), make_method("fp8", ""));
  EXPECT_EQ(error_of([&] { rig.decode({}, {PayloadBytes(4)}); }), "fp8: 4 bytes, not 3");
}

TEST(Fp8, LosesNothingBetweenTwoWorkers) {
  constexpr int kWorkers = 2;
  constexpr int64_t kSteps = 20;
  const ReplicaOptions options = fp8_options();
  const auto gradient = [](int rank, int64_t step, int segment, int64_t i) {
    return 7.0f * small_integers(rank, step, segment, i);  // 140 needs over three bits
  };
  std::vector<std::vector<float>> kept(kWorkers);
  std::vector<int64_t> encoded(kWorkers);
  Results results(kWorkers);
  run_workers(kWorkers, {.threads = 1}, [&](Worker& worker) {
    const auto rank = static_cast<size_t>(worker.rank);
    TestReplica replica(worker.communicator, options);
    for (int64_t step = 0; step < kSteps; ++step) {
      replica.step(step, gradient);
      results[rank].push_back(replica.gradients());
      EXPECT_EQ(replica.sync().compressed_units(),
                static_cast<int>(replica.sync().cut().units.size()));
      const auto slots = static_cast<int64_t>(replica.sync().cut().buckets.size());
      encoded[rank] = replica.sync().cost().bytes_encoded - slots * kHeaderBytes;
    }
    kept[rank] = replica.elements(replica.parameters().state("residual"));
  });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(encoded, std::vector<int64_t>(kWorkers, static_cast<int64_t>(kept[0].size())));
  EXPECT_GT(std::count_if(kept[0].begin(), kept[0].end(), [](float v) { return v != 0.0f; }), 0);

  const Results given = sums_over_workers(kWorkers, options, kSteps, gradient);
  for (size_t i = 0; i < kept[0].size(); ++i) {
    // integers below 2^24 are exact
    float in = 0.0f, out = kept[0][i] + kept[1][i];
    for (size_t step = 0; step < kSteps; ++step) {
      in += given[0][step][i];
      out += results[0][step][i];
    }
    ASSERT_EQ(in, out) << "element " << i;
  }
}

TEST(Fp8, TrainsByItsName) {
  const TempDir directory;
  const std::string text = R"(
    workers = 2
    model.name = "mlp"
    data = { name = "synthetic", train_count = 64, test_count = 32 }
    train = { batch = 32, epochs = 2 }
    compression.method = "fp8"
  )";
  const Summary summary =
      *train(Config::from_text(text, "test.toml"), {.out = directory / "run", .quiet = true});
  EXPECT_EQ(summary.steps, 4);
  EXPECT_EQ(summary.bytes_encoded, summary.bytes_raw / 4.0 + kHeaderBytes);  // header of one bucket
  EXPECT_GT(summary.reduction_sent, 3.9);  // 4 without the status words
}

}  // namespace
}  // namespace wisp
