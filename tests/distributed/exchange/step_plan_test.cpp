#include "distributed/exchange/step_plan.h"

#include <gtest/gtest.h>

#include "tests/support/test_replica.h"
#include "tests/support/toy_compressors.h"

namespace wisp {
namespace {

TEST(StepPlan, StaysDenseWhileAMethodWouldSendMore) {
  std::atomic<int> engaged{0};
  ReplicaOptions options = all_by([&] { return toy_guarded(3, &engaged); });
  options.averaging.guard = true;
  const Results sums = sums_over_workers(4, options, 6);
  run_workers(4, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, options);
    const auto units = static_cast<int>(replica.sync().cut().units.size());
    for (int64_t step = 0; step < 6; ++step) {
      replica.step(step, small_integers);
      EXPECT_EQ(replica.sync().compressed_units(), step < 3 ? 0 : units);
      EXPECT_EQ(replica.gradients(), sums[0][static_cast<size_t>(step)]);
    }
    worker.communicator.barrier()->wait();
    EXPECT_EQ(engaged, 4 * units);  // one handover for each unit of each worker
  });
}

TEST(StepPlan, NeedsNoHandoverIfCompressedFromTheStart) {
  std::atomic<int> engaged{0};
  run_replicas(2, all_by([&] { return toy_guarded(0, &engaged); }), 3);
  EXPECT_EQ(engaged, 0);
}

TEST(StepPlan, StaysCompressedOnceItIs) {
  Traits sparse;
  sparse.sparse = true;
  std::atomic<int> engaged{0};
  ReplicaOptions options = all_by([&] { return toy_with_traits(toy_nonzeros(), sparse); });
  options.averaging.ratio = [](double epoch) { return epoch == 1.0 ? 0.5 : 1.0; };
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, options);
    const auto units = static_cast<int>(replica.sync().cut().units.size());
    for (int64_t step = 0; step < 3; ++step) {
      replica.step(step, small_integers);
      EXPECT_EQ(replica.sync().compressed_units(), step < 1 ? 0 : units);
    }
  });
}

TEST(StepPlan, TellsTheOptimizerWhatTheResultIs) {
  Traits traits;
  traits.result = UpdateRule::update;
  ReplicaOptions options = all_by([=] { return toy_with_traits(toy_owners(), traits); });
  options.method_of = [](const Segment& segment) { return segment.id == 2 ? 0 : kDense; };
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, options);
    replica.step(0, small_integers);
    for (int id = 0; id < 6; ++id) {
      EXPECT_EQ(replica.sync().rules()[static_cast<size_t>(id)],
                id == 2 ? UpdateRule::update : UpdateRule::gradient);
    }
  });
}

}  // namespace
}  // namespace wisp
