// Tests of failures: an error in one worker ends all workers, and all report its cause and rank.
#include <gtest/gtest.h>

#include <thread>

#include "core/train/sgd.h"
#include "tests/support/counting_communicator.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"
#include "tests/support/test_replica.h"
#include "tests/support/toy_compressors.h"

namespace wisp {
namespace {

using Work = std::function<void(Worker&, const ReplicaOptions&)>;

/// The error text of a run in which each of the `workers` does `work`.
std::string failure_of(int workers, ReplicaOptions options, bool overlap, const Work& work) {
  options.averaging.overlap = overlap;
  return error_of([&] {
    run_workers(workers, {.threads = 1}, [&](Worker& worker) { work(worker, options); });
  });
}

/// Expects the culprit's error on every rank: rank 1 of three, and the only rank of one.
void expect_cause(const ReplicaOptions& options, const Work& work, const std::string& where = "") {
  for (const bool overlap : {true, false}) {
    EXPECT_EQ(failure_of(3, options, overlap, work), "rank 1: " + where + "wheel came off");
    EXPECT_EQ(failure_of(1, options, overlap, work), where + "wheel came off");
  }
}

bool is_culprit(int rank, int workers) { return rank == std::min(1, workers - 1); }

void fail_if_culprit(const Worker& worker) {
  if (is_culprit(worker.rank, worker.communicator.size())) throw Error("wheel came off");
}

void three_steps(Worker& worker, const ReplicaOptions& options) {
  TestReplica replica(worker.communicator, options);
  for (int64_t step = 0; step < 3; ++step) replica.step(step, small_integers);
}

TEST(Failure, InBackwardEndsAllWorkers) {
  expect_cause(all_by(toy_owners), [](Worker& worker, const ReplicaOptions& options) {
    TestReplica replica(worker.communicator, options);
    replica.step(0, small_integers);
    replica.step(1, small_integers, 1.0, [&](const Segment& segment) {
      if (segment.id == 3) fail_if_culprit(worker);
    });
    replica.step(2, small_integers);
  });
}

TEST(Failure, BeforeForwardEndsAllWorkers) {
  expect_cause({}, [](Worker& worker, const ReplicaOptions& options) {
    TestReplica replica(worker.communicator, options);
    replica.step(0, small_integers);
    fail_if_culprit(worker);
    replica.step(1, small_integers);
  });
}

TEST(Failure, InTheOptimizerEndsAllWorkers) {
  for (const int workers : {1, 3}) {
    const auto train = [](Worker& worker, const ReplicaOptions& options) {
      TestReplica replica(worker.communicator, options);
      Sgd optimizer(replica.parameters(), {});
      for (int64_t step = 0; step < 3; ++step) {
        replica.step(step, small_integers);
        std::span<const UpdateRule> rules = replica.sync().rules();
        if (step == 1 && is_culprit(worker.rank, worker.communicator.size()))
          rules = rules.subspan(1);
        optimizer.step(replica.context(), 0.1, step + 1, rules);
      }
    };
    for (const bool overlap : {true, false}) {
      EXPECT_EQ(failure_of(workers, {}, overlap, train),
                std::string(workers > 1 ? "rank 1: " : "") + "optimizer: 5 rules for 6 segments");
    }
  }
}

TEST(Failure, AfterAnUpdateEndsAllWorkers) {
  expect_cause({}, [](Worker& worker, const ReplicaOptions& options) {
    TestReplica replica(worker.communicator, options);
    for (int64_t step = 0; step < 3; ++step) {
      replica.step(step, small_integers);
      if (step == 1) fail_if_culprit(worker);
    }
  });
}

TEST(Failure, InEncodeOrDecodeEndsAllWorkers) {
  for (const std::string phase : {"encode", "decode"}) {
    for (const int round : {0, 1}) {
      const auto options = all_by([=] {
        return toy_hooked(toy_owners(),
                          [=](const char* now, const Unit&, const StepInfo& info, int now_round) {
                            const bool here = now == phase && now_round == round && info.step == 1;
                            if (here && is_culprit(info.rank, info.ranks))
                              throw Error("wheel came off");
                          });
      });
      expect_cause(options, three_steps, phase == "decode" ? "step 1, bucket 0: " : "");
    }
  }
}

TEST(Failure, OfACollectiveEndsAllWorkers) {
  expect_cause(all_by(toy_owners), [](Worker& worker, const ReplicaOptions& options) {
    TestReplica replica(worker.communicator, options);
    replica.step(0, small_integers, 1.0, [&](const Segment& segment) {
      if (segment.id == 2 && is_culprit(worker.rank, worker.communicator.size()))
        worker.communicator.abort("wheel came off");
    });
    replica.step(1, small_integers);
  });
}

TEST(Failure, WhileOthersWaitForTheirTurnEndsAllWorkers) {
  const std::string failure = error_of([] {
    run_workers(3, {.threads = 1, .turns = true}, [](Worker& worker) {
      TestReplica replica(worker.communicator, {});
      // with overlap, the comm thread waits for ranks that wait for this worker's turn
      replica.step(0, small_integers, 1.0, [](const Segment&) { throw Error("wheel came off"); });
    });
  });
  EXPECT_NE(failure.find("wheel came off"), std::string::npos) << failure;
}

TEST(Failure, OfATaskBetweenStepsEndsAllWorkers) {
  expect_cause({}, [](Worker& worker, const ReplicaOptions& options) {
    TestReplica replica(worker.communicator, options);
    replica.step(0, small_integers);
    replica.sync().between_steps([&] {
      fail_if_culprit(worker);
      worker.communicator.barrier()->wait();
    });
  });
}

TEST(Failure, DifferentPlansAreFoundBeforeAnythingIsSent) {
  const std::string failure = failure_of(2, {}, true, [](Worker& worker, ReplicaOptions options) {
    if (worker.rank == 1) options.averaging.buckets.bucket_bytes = 64;
    TestReplica(worker.communicator, options).step(0, small_integers);
  });
  EXPECT_NE(failure.find("step 0: the ranks' plans"), std::string::npos) << failure;
}

/// With one segment both ranks have the same buckets, but they cut it into different pieces.
TEST(Failure, DifferentPiecesAreFoundBeforeAnythingIsSent) {
  const std::string failure = failure_of(2, {}, true, [](Worker& worker, ReplicaOptions options) {
    options.shapes = {{1000}};
    if (worker.rank == 1) options.averaging.buckets.bucket_bytes = 512;
    TestReplica(worker.communicator, options).step(0, small_integers);
  });
  EXPECT_NE(failure.find("step 0: the ranks' plans"), std::string::npos) << failure;
}

TEST(Failure, DifferentMessagesAreFoundBeforeAnythingIsSent) {
  const std::string failure = failure_of(2, {}, true, [](Worker& worker, const ReplicaOptions&) {
    const ReplicaOptions options = worker.rank == 1 ? all_by(toy_owners) : all_by(toy_scaled_sum);
    TestReplica(worker.communicator, options).step(0, small_integers);
  });
  EXPECT_NE(failure.find("step 0: the ranks' plans"), std::string::npos) << failure;
}

/// Runs a step in which only the segments `ready` become ready.
void partial_step(Worker& worker, const ReplicaOptions& options, const std::vector<int>& ready) {
  TestReplica replica(worker.communicator, options);
  const Tensor loss({1}, DType::f32);
  replica.sync().begin({});
  replica.sync().forward_done(loss);
  for (const int id : ready) replica.parameters().ready(id);
  replica.sync().before_update();
}

TEST(Failure, AParameterWithoutGradientIsNamed) {
  for (const bool overlap : {true, false}) {
    const std::string failure =
        failure_of(2, {}, overlap, [](Worker& worker, const ReplicaOptions& options) {
          partial_step(worker, options, {0, 1, 3, 5});
        });
    EXPECT_NE(failure.find("no gradient to p3, p1: freeze"), std::string::npos) << failure;
  }
}

TEST(Failure, AGradientThatIsReadyTwiceIsNamed) {
  const std::string failure =
      failure_of(1, {}, true, [](Worker& worker, const ReplicaOptions& options) {
        partial_step(worker, options, {0, 1, 1, 2, 3, 4, 5});
      });
  EXPECT_NE(failure.find("the gradient of p4"), std::string::npos) << failure;
}

TEST(Failure, AGradientOutsideAStepIsNamed) {
  const std::string failure =
      failure_of(1, {}, true, [](Worker& worker, const ReplicaOptions& options) {
        TestReplica replica(worker.communicator, options);
        replica.parameters().ready(0);
      });
  EXPECT_NE(failure.find("the gradient of p5"), std::string::npos) << failure;
}

/// A compressor that reports more bytes than its outlet holds.
class Overflowing final : public Compressor {
 public:
  Traits traits() const override { return {}; }
  std::vector<StateSpec> state(const UnitSpec&, int) const override { return states; }
  int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const override { return 0; }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 1; }
  Message message(const UnitSpec&, const StepInfo&, int) const override {
    return {.kind = kind, .bytes = 8, .variable = true};
  }
  void encode(Context&, Unit&, const StepInfo&, int, std::span<const Outlet> outlets) override {
    *outlets[0].used = 12;
  }
  void decode(Context&, Unit&, const StepInfo&, int, std::span<const Payload>) override {}

  Collective kind = Collective::all_gather;
  std::vector<StateSpec> states;
};

TEST(Failure, AMessageAboveItsCapacityIsAnError) {
  const std::string failure =
      failure_of(2, all_by([] { return std::make_unique<Overflowing>(); }), true, three_steps);
  EXPECT_NE(failure.find("encoded 12 bytes into a message of at most 8"), std::string::npos)
      << failure;
}

TEST(Failure, MessagesThatAveragingCannotCarryAreErrors) {
  for (const Collective kind : {Collective::all_reduce, Collective::neighbours}) {
    const auto make = [kind] {
      auto toy = std::make_unique<Overflowing>();
      toy->kind = kind;
      return toy;
    };
    EXPECT_NE(failure_of(2, all_by(make), true, three_steps), "no error");
  }
}

TEST(Failure, AMeanIsNotClippedBesideAResidual) {
  ReplicaOptions options = all_by(toy_owners);
  options.averaging.clip = {.norm = 1.0, .where = ClipWhere::mean};
  const std::string failure = failure_of(2, options, true, three_steps);
  EXPECT_NE(failure.find("clip each worker's own"), std::string::npos) << failure;
}

TEST(Failure, ResidualsAreExact) {
  const auto make = [] {
    auto toy = std::make_unique<Overflowing>();
    toy->states = {{.name = "residual", .dtype = DType::bf16}};
    return toy;
  };
  const std::string failure = failure_of(2, all_by(make), true, three_steps);
  EXPECT_NE(
      failure.find("state residual is bf16, per-element state has the parameters' dtype, f32"),
      std::string::npos)
      << failure;
}

TEST(Failure, CompressionNeedsF32) {
  TestContext compute, comm;  // contexts for f64
  Parameter parameter{"p", {8}, {}, true, {}};
  FlatParameters parameters(compute.context, {&parameter}, {});
  run_workers(1, {.threads = 1}, [&](Worker& worker) {
    Trace trace(0, {});
    const std::string error = error_of([&] {
      GradientAveraging(worker.communicator, compute.context, comm.context, parameters,
                        all_by(toy_owners).methods(), {0}, {}, trace);
    });
    EXPECT_NE(error.find("f32"), std::string::npos) << error;
  });
}

/// The others wait for a hanging rank until the collective reports that it is late. wait() then
/// names the rank at once, without a second time limit.
TEST(Failure, ARankThatHangsIsWaitedForOnce) {
  for (const bool in_backward : {false, true}) {
    const double timeout_s = in_backward ? 0.5 : 0.02;  // in backward, both ranks must arrive first
    ThreadGroup group(2, {}, timeout_s);
    const auto errors = run_ranks(group, [&](Communicator& communicator) {
      const auto hang = [&] {
        while (communicator.rank() == 1 && group.failure().empty()) std::this_thread::yield();
      };
      if (!in_backward) hang();
      CountingCommunicator counting(communicator);
      TestReplica replica(counting, {});
      try {
        replica.step(0, small_integers, 1.0, [&](const Segment& segment) {
          if (segment.id == 3) hang();
        });
      } catch (const Error&) {
        EXPECT_EQ(counting.blocking_waits(), 0) << "rank " << communicator.rank();
        throw;
      }
    });
    EXPECT_EQ(errors[0], group.failure());
    EXPECT_NE(errors[0].find(concat(": waited ", timeout_s, " s for rank 1, which has not come")),
              std::string::npos)
        << errors[0];
  }
}

}  // namespace
}  // namespace wisp
