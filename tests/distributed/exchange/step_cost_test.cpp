#include "distributed/exchange/step_cost.h"

#include <gtest/gtest.h>

#include "distributed/exchange/wire_header.h"
#include "tests/support/test_replica.h"
#include "tests/support/toy_compressors.h"

namespace wisp {
namespace {

constexpr int64_t kNumel = 960;  // a multiple of 2, 3 and 4: shares of an all-reduce are equal
constexpr int64_t kStatusBytes = 16;
constexpr int64_t kHeaders = 2 * kHeaderBytes;  // headers of two buckets

/// Bytes that a rank sends in an all-reduce of `bytes`, which are elements of 4 bytes. The last
/// ranks own the larger shares.
int64_t all_reduced(int64_t bytes, int rank, int workers) {
  const int64_t n = bytes / 4;
  const int64_t own = (n * (rank + 1) / workers - n * rank / workers) * 4;
  return bytes - own + (workers - 1) * own;
}

ReplicaOptions two_segments() {
  ReplicaOptions options;
  options.shapes = {{kNumel}, {kNumel}};
  options.averaging.guard = false;
  return options;
}

/// Runs two steps and hands each rank's cost of each step to `check`.
void cost_of(int workers, const ReplicaOptions& options,
             const std::function<void(const StepCost&, int rank)>& check) {
  run_workers(workers, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, options);
    for (int64_t step = 0; step < 2; ++step) {
      replica.step(step, small_integers);
      check(replica.sync().cost(), worker.rank);
    }
  });
}

TEST(Accounting, ADenseStepSendsWhatAnAllReduceMust) {
  for (const int workers : {1, 2, 3, 4}) {
    cost_of(workers, two_segments(), [&](const StepCost& cost, int rank) {
      const int64_t raw = 2 * kNumel * 4;
      EXPECT_EQ(cost.bytes_raw, raw);
      EXPECT_EQ(cost.bytes_encoded, raw);
      EXPECT_EQ(cost.bytes_dense, 2 * (workers - 1) * raw / workers);
      EXPECT_EQ(cost.bytes_sent, cost.bytes_dense + all_reduced(kStatusBytes, rank, workers));
      EXPECT_EQ(cost.bytes_received, cost.bytes_sent);
    });
  }
}

TEST(Accounting, AGatherSendsPayloadSizesAndHeadersToEveryOther) {
  ReplicaOptions options = two_segments();
  options.methods = [] {
    std::vector<Method> methods;
    methods.push_back({"toy", toy_nonzeros(), Scope::layer});
    return methods;
  };
  const GradientOf gradient = [](int rank, int64_t, int segment, int64_t i) {
    return i <= rank + segment ? 1.0f
                               : 0.0f;  // rank r has r + 1 values of segment 0, r + 2 of segment 1
  };
  for (const int workers : {1, 2, 4}) {
    run_workers(workers, {.threads = 1}, [&](Worker& worker) {
      TestReplica replica(worker.communicator, options);
      replica.step(0, gradient);
      const auto offered = [](int64_t rank) { return 8 * (2 * rank + 3) + 2 * 4 + kHeaders; };
      int64_t all = 0;
      for (int rank = 0; rank < workers; ++rank) all += offered(rank);
      const StepCost& cost = replica.sync().cost();
      const int64_t status = all_reduced(kStatusBytes, worker.rank, workers);
      EXPECT_EQ(cost.bytes_encoded, offered(worker.rank));
      EXPECT_EQ(cost.bytes_sent, (workers - 1) * offered(worker.rank) + status);
      EXPECT_EQ(cost.bytes_received, all - offered(worker.rank) + status);
    });
  }
}

TEST(Accounting, CountsWhatEachRankOfATreeSends) {
  ReplicaOptions options = two_segments();
  options.methods = [] {
    std::vector<Method> methods;
    methods.push_back({"toy", toy_tree(), Scope::layer});
    return methods;
  };
  cost_of(3, options, [&](const StepCost& cost, int rank) {
    const int64_t bytes = 2 * kNumel * 4 + kHeaders;
    const int64_t status = all_reduced(kStatusBytes, rank, 3);
    // ranks 1 and 2 encode for rank 0, which encodes for each of them
    EXPECT_EQ(cost.bytes_encoded, (rank == 0 ? 2 : 1) * bytes);
    EXPECT_EQ(cost.bytes_sent, (rank == 0 ? 2 : 1) * bytes + status);
    EXPECT_EQ(cost.bytes_received, (rank == 0 ? 2 : 1) * bytes + status);
  });
}

TEST(Accounting, ASkippedStepSendsItsStatusOnly) {
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, two_segments());
    replica.step(0, small_integers);
    replica.step(1, small_integers, std::numeric_limits<double>::infinity());
    EXPECT_EQ(replica.sync().cost().bytes_sent, kStatusBytes);
    EXPECT_EQ(replica.sync().cost().bytes_encoded, 0);
  });
}

TEST(Accounting, AddsUp) {
  StepCost sum{
      .bytes_raw = 1, .bytes_sent = 2, .wire_ms = 0.5, .nonfinite = {"a"}, .too_large = {"c"}};
  sum +=
      {.bytes_raw = 10, .bytes_encoded = 3, .wire_ms = 1.0, .nonfinite = {"b"}, .too_large = {"d"}};
  EXPECT_EQ(sum.bytes_raw, 11);
  EXPECT_EQ(sum.bytes_encoded, 3);
  EXPECT_EQ(sum.bytes_sent, 2);
  EXPECT_EQ(sum.wire_ms, 1.5);
  EXPECT_EQ(sum.nonfinite, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(sum.too_large, (std::vector<std::string>{"c", "d"}));
}

}  // namespace
}  // namespace wisp
