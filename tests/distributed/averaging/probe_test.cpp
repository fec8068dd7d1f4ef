#include "distributed/averaging/probe.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/test_replica.h"
#include "tests/support/toy_compressors.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// Options for two segments compressed by `method` at `ratio`.
ReplicaOptions by(const std::string& method, double ratio, int64_t probe_every,
                  const std::string& toml = "") {
  ReplicaOptions options =
      all_by([=] { return make_method(method, toml, {.workers = 2, .momentum = 0.9}); });
  options.shapes = {{40, 5}, {30, 3}};
  options.averaging.ratio = [ratio](double) { return ratio; };
  options.averaging.probe_every = probe_every;
  return options;
}

float rough_gradient(int rank, int64_t step, int segment, int64_t i) {
  return std::sin(small_integers(rank, step, segment, i) + static_cast<float>(i)) * 0.7f;
}

/// Rank 0's health after each step. Both ranks must agree.
std::vector<std::optional<Health>> healths(const ReplicaOptions& options, int64_t steps,
                                           const GradientOf& gradient = rough_gradient) {
  std::vector<std::vector<std::optional<Health>>> seen(2);
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, options);
    for (int64_t step = 0; step < steps; ++step) {
      replica.step(step, gradient);
      seen[static_cast<size_t>(worker.rank)].push_back(replica.sync().health());
    }
  });
  for (size_t step = 0; step < seen[0].size(); ++step) {
    EXPECT_EQ(seen[0][step].has_value(), seen[1][step].has_value());
    if (seen[0][step] && !std::isnan(seen[0][step]->cosine)) {
      EXPECT_EQ(seen[0][step]->cosine, seen[1][step]->cosine);
    }
  }
  return seen[0];
}

// Top-1 with error feedback of the gradient (3, 1): the 3 travels twice, while the residual of the
// other element grows to 1, then 2. The third gradient is (1, 1), so of (1, 1 + 2) the 3 travels.
TEST(Probe, MeasuresWhatAPersonWould) {
  ReplicaOptions options = by("topk", 0.5, 1);
  options.shapes = {{2, 1}};
  const auto seen = healths(options, 3, [](int, int64_t step, int, int64_t i) {
    return i == 0 && step < 2 ? 3.0f : 1.0f;
  });
  EXPECT_DOUBLE_EQ(seen[0]->residual, 1.0 / std::sqrt(10.0));
  EXPECT_DOUBLE_EQ(seen[1]->residual, 2.0 / std::sqrt(10.0));
  EXPECT_DOUBLE_EQ(seen[2]->residual, 1.0 / std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(seen[0]->staleness, 0.5);
  EXPECT_DOUBLE_EQ(seen[1]->staleness, 1.0);
  EXPECT_DOUBLE_EQ(seen[2]->staleness, 0.5);
  // The tolerance covers a root and a quotient. The sum over two workers is (6, 0) instead of
  // (6, 2), then (0, 6) instead of (2, 2).
  EXPECT_NEAR(seen[0]->cosine, 3.0 / std::sqrt(10.0), 1e-15);
  EXPECT_NEAR(seen[1]->cosine, 3.0 / std::sqrt(10.0), 1e-15);
  EXPECT_NEAR(seen[2]->cosine, 1.0 / std::sqrt(2.0), 1e-15);
}

TEST(Probe, OfTrackedSumsAsksWhatTheyMiss) {
  ReplicaOptions options = by("topk", 0.5, 1, "compression.feedback = \"ef21\"");
  options.shapes = {{2, 1}};
  const auto seen =
      healths(options, 2, [](int, int64_t, int, int64_t i) { return i == 0 ? 3.0f : 1.0f; });
  EXPECT_DOUBLE_EQ(seen[0]->residual, 1.0 / std::sqrt(10.0));  // (3, 1), of which (3, 0) is tracked
  EXPECT_DOUBLE_EQ(seen[1]->residual, 0.0);
  EXPECT_NEAR(seen[1]->cosine, 1.0, 1e-12);
  EXPECT_TRUE(std::isnan(seen[1]->staleness));
}

TEST(Probe, HasNoResidualWhereNothingIsKept) {
  const auto seen = healths(by("fp16", 1.0, 1), 2);
  EXPECT_TRUE(std::isnan(seen[1]->residual));
  EXPECT_NEAR(seen[1]->cosine, 1.0, 1e-5);  // f16 has 11 bits, and the error is squared
}

TEST(Probe, MeasuresEveryNthStepOfWhatIsCompressed) {
  const auto seen = healths(by("topk", 0.1, 3), 7);
  for (size_t step = 0; step < seen.size(); ++step)
    EXPECT_EQ(seen[step].has_value(), step % 3 == 2) << step;
  for (const auto& health : healths(by("topk", 0.1, 0), 3)) EXPECT_FALSE(health);
  ReplicaOptions dense = by("topk", 1.0, 1);  // at ratio 1 all units go dense
  for (const auto& health : healths(dense, 3)) EXPECT_FALSE(health);
}

TEST(Probe, SkipsWhatIsSkippedAndCountsNonFiniteGradientsAsZero) {
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, by("topk", 0.1, 1));
    replica.step(0, rough_gradient);
    EXPECT_TRUE(replica.sync().health());
    replica.step(1, rough_gradient, std::numeric_limits<double>::quiet_NaN());
    EXPECT_FALSE(replica.sync().health());
    replica.step(2, [](int rank, int64_t step, int segment, int64_t i) {
      return rank == 1 ? std::numeric_limits<float>::infinity()
                       : rough_gradient(rank, step, segment, i);
    });
    ASSERT_TRUE(replica.sync().health());
    EXPECT_TRUE(std::isfinite(replica.sync().health()->cosine));
    EXPECT_TRUE(std::isfinite(replica.sync().health()->residual));
  });
}

/// Gradients, per-element states and counted bytes after every step.
struct Trail {
  Results gradients;
  std::vector<std::vector<float>> states;
  std::vector<int64_t> bytes;
};

Trail trail_of(const ReplicaOptions& options) {
  Trail trail;
  trail.gradients.resize(2);
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, options);
    for (int64_t step = 0; step < 8; ++step) {
      replica.step(step, rough_gradient);
      trail.gradients[static_cast<size_t>(worker.rank)].push_back(replica.gradients());
      if (worker.rank > 0) continue;
      trail.bytes.push_back(replica.sync().cost().bytes_sent);
      trail.bytes.push_back(replica.sync().cost().bytes_encoded);
      for (const std::string& name : replica.parameters().state_names())
        trail.states.push_back(replica.elements(replica.parameters().state(name)));
    }
  });
  return trail;
}

TEST(Probe, ChangesNoBitOfARunByAnyMethod) {
  for (const auto& [name, entry] : CompressorRegistry::instance().entries()) {
    if (name == "none") continue;
    SCOPED_TRACE(name);
    const Trail without = trail_of(by(name, 0.1, 0));
    for (const int64_t every : {1, 3}) {
      const Trail with = trail_of(by(name, 0.1, every));
      EXPECT_EQ(with.gradients, without.gradients);
      EXPECT_EQ(with.states, without.states);
      EXPECT_EQ(with.bytes, without.bytes);
    }
  }
}

}  // namespace
}  // namespace wisp
