#include "distributed/averaging/gradient_averaging.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/test_replica.h"
#include "tests/support/toy_compressors.h"

namespace wisp {
namespace {

constexpr int64_t kSteps = 4;

struct NamedToy {
  const char* name;
  MakeToy make;
};

/// The toy compressors that give the complete sum in every step.
std::vector<NamedToy> exact_toys() {
  return {{"scaled sum", toy_scaled_sum},
          {"nonzeros", toy_nonzeros},
          {"owners", toy_owners},
          {"tree", [] { return toy_tree(); }},
          {"variable tree", [] { return toy_tree(true); }},
          {"silent round", toy_silent_round}};
}

/// Each of the six toys takes every seventh segment; the rest go dense.
ReplicaOptions everything_at_once() {
  ReplicaOptions options;
  options.shapes.assign(21, Shape{50});
  for (size_t i = 0; i < options.shapes.size(); ++i)
    options.shapes[i] = {static_cast<int64_t>(1 + 37 * i % 200)};
  options.methods = [] {
    std::vector<Method> methods;
    for (const NamedToy& toy : exact_toys())
      methods.push_back({toy.name, toy.make(), Scope::layer});
    return methods;
  };
  options.method_of = [](const Segment& segment) { return segment.id % 7 - 1; };
  options.averaging.guard = false;
  return options;
}

TEST(GradientAveraging, GivesTheMeanOfDenseGradients) {
  for (const int workers : {1, 2, 3, 4}) {
    const ReplicaOptions options;
    EXPECT_EQ(run_replicas(workers, options, kSteps), sums_over_workers(workers, options, kSteps));
  }
}

TEST(GradientAveraging, GivesTheMeanThroughEveryKindOfRound) {
  for (const NamedToy& toy : exact_toys()) {
    for (const int workers : {1, 2, 3, 4}) {
      const ReplicaOptions options = all_by(toy.make);
      EXPECT_EQ(run_replicas(workers, options, kSteps), sums_over_workers(workers, options, kSteps))
          << toy.name << ", " << workers << " workers";
    }
  }
}

TEST(GradientAveraging, GivesTheMeanInEveryScope) {
  for (const Scope scope : {Scope::bucket, Scope::model}) {
    for (const NamedToy& toy : exact_toys()) {
      ReplicaOptions options = all_by(toy.make, scope);
      options.shapes = {{300, 1}, {7, 5}, {64, 8}, {40, 9}};  // all with weight decay
      EXPECT_EQ(run_replicas(3, options, kSteps), sums_over_workers(3, options, kSteps))
          << toy.name;
    }
  }
}

TEST(GradientAveraging, ReducesATreeOfAnyNumberOfWorkers) {
  for (const int workers : {5, 6, 7}) {
    const ReplicaOptions options = all_by([] { return toy_tree(true); });
    EXPECT_EQ(run_replicas(workers, options, 2), sums_over_workers(workers, options, 2));
  }
}

TEST(GradientAveraging, CarriesMethodsAndDenseSegmentsSideBySide) {
  for (const int workers : {1, 2, 4}) {
    const ReplicaOptions options = everything_at_once();
    EXPECT_EQ(run_replicas(workers, options, kSteps), sums_over_workers(workers, options, kSteps));
  }
}

TEST(GradientAveraging, KeepsStateOfElementsAndOfUnits) {
  const ReplicaOptions options = all_by(toy_parity);
  for (const int workers : {1, 3}) {
    const Results results = run_replicas(workers, options, 4);
    const Results sums = sums_over_workers(workers, options, 4);
    for (size_t step = 0; step < 4; step += 2) {
      for (size_t i = 0; i < sums[0][step].size(); ++i) {
        ASSERT_EQ(results[0][step][i] + results[0][step + 1][i],
                  sums[0][step][i] + sums[0][step + 1][i]);
      }
    }
    for (const auto& of_rank : results) EXPECT_EQ(of_rank, results[0]);
  }
}

TEST(GradientAveraging, NamesUnitStateByItsFirstSegment) {
  ReplicaOptions options = all_by(toy_parity);
  options.averaging.buckets.encode_bytes = 0;
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, options);
    for (int64_t step = 0; step < 3; ++step) replica.step(step, small_integers);
    std::vector<std::string> names;
    for (const SavedState& saved : replica.sync().state()) {
      names.push_back(saved.name);
      const bool shared = saved.name.rfind("toy_residual/", 0) != 0;
      EXPECT_EQ(saved.sharing == Sharing::shared, shared) << saved.name;
      if (saved.name == "unit/p4/toy_updates" || saved.name == "applied") {
        EXPECT_EQ(*saved.tensor.data<int64_t>(), 3);
      }
    }
    EXPECT_EQ(names, (std::vector<std::string>{
                         "toy_residual/p5", "unit/p5/toy_updates", "toy_residual/p4",
                         "unit/p4/toy_updates", "toy_residual/p3", "unit/p3/toy_updates",
                         "toy_residual/p2", "unit/p2/toy_updates", "toy_residual/p1",
                         "unit/p1/toy_updates", "toy_residual/p0", "unit/p0/toy_updates", "engaged",
                         "applied", "last_lr"}));
    EXPECT_NE(replica.sync().layout(), "");
  });
}

// ---------------------------------------------------------------- the same bits in every order

/// Gradients whose sum depends on the order of the additions.
float rough(int rank, int64_t step, int segment, int64_t i) {
  return std::sin(small_integers(rank, step, segment, i) + static_cast<float>(i)) * 1.7f;
}

struct Variation {
  const char* name;
  std::function<void(ReplicaOptions&)> apply;
};

std::vector<Variation> variations() {
  return {{"again", [](ReplicaOptions&) {}},
          {"inline", [](ReplicaOptions& o) { o.averaging.overlap = false; }},
          {"shuffled readiness", [](ReplicaOptions& o) { o.shuffle = 5; }},
          {"yields", [](ReplicaOptions& o) { o.yields = true; }},
          {"shuffled and yields", [](ReplicaOptions& o) { o.shuffle = 6, o.yields = true; }},
          {"late compute", [](ReplicaOptions& o) { o.late_compute = true; }},
          {"late comm", [](ReplicaOptions& o) { o.late_comm = true; }},
          {"both late, shuffled",
           [](ReplicaOptions& o) { o.late_compute = o.late_comm = true, o.shuffle = 7; }}};
}

void expect_equal_in_every_order(const ReplicaOptions& options) {
  const Results expected = run_replicas(3, options, kSteps, rough);
  for (const Variation& variation : variations()) {
    ReplicaOptions varied = options;
    variation.apply(varied);
    EXPECT_EQ(run_replicas(3, varied, kSteps, rough), expected) << variation.name;
  }
}

TEST(GradientAveraging, HasTheSameBitsInEveryOrderIfDense) { expect_equal_in_every_order({}); }

TEST(GradientAveraging, HasTheSameBitsInEveryOrderIfCompressed) {
  expect_equal_in_every_order(everything_at_once());
}

TEST(GradientAveraging, HasTheSameBitsInEveryOrderWithState) {
  expect_equal_in_every_order(all_by(toy_parity));
}

/// Options under which a method that clips takes every second segment; the others go dense.
ReplicaOptions clipped_options(bool per_layer) {
  ReplicaOptions options = all_by(toy_owners);
  options.averaging.clip = {.norm = 2.0, .per_layer = per_layer};
  options.method_of = [](const Segment& segment) { return segment.id % 2 - 1; };
  return options;
}

TEST(GradientAveraging, HasTheSameBitsInEveryOrderIfClippedByTheWholeNorm) {
  expect_equal_in_every_order(clipped_options(false));
}

TEST(GradientAveraging, HasTheSameBitsInEveryOrderIfClippedByLayer) {
  expect_equal_in_every_order(clipped_options(true));
}

TEST(GradientAveraging, HasTheSameBitsForAnyBuckets) {
  ReplicaOptions options;
  const Results expected = run_replicas(3, options, 2, rough);
  for (const int64_t bytes : {0, 1, 4000, 1'000'000}) {
    options.averaging.buckets.bucket_bytes = bytes;
    EXPECT_EQ(run_replicas(3, options, 2, rough), expected) << bytes;
  }
}

TEST(GradientAveraging, LetsUnitsOfOneFieldEachChangeNoBit) {
  ReplicaOptions options = all_by(toy_scaled_sum);
  const Results expected = run_replicas(3, options, 2, rough);
  options.averaging.buckets = {.bucket_bytes = 100'000, .encode_bytes = 0};
  EXPECT_EQ(run_replicas(3, options, 2, rough), expected);
}

// ---------------------------------------------------------------- non-finite, stop

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(GradientAveraging, SkipsAStepOnAllRanksIfALossIsNotFinite) {
  run_workers(3, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, all_by(toy_parity));
    replica.step(0, small_integers);
    const std::vector<float> residual =
        replica.elements(replica.parameters().state("toy_residual"));
    EXPECT_EQ(replica.sync().updates(), 1);
    EXPECT_EQ(replica.step(1, small_integers, worker.rank == 1 ? kNaN : 1.0), Outcome::skipped);
    EXPECT_EQ(replica.sync().updates(), 1);
    EXPECT_EQ(replica.elements(replica.parameters().state("toy_residual")), residual);
    for (const SavedState& saved : replica.sync().state()) {
      if (saved.sharing == Sharing::shared && saved.tensor.dtype() == DType::i64 &&
          saved.name != "engaged") {
        EXPECT_EQ(*saved.tensor.data<int64_t>(), 1) << saved.name;
      }
    }
    EXPECT_EQ(replica.step(2, small_integers), Outcome::applied);
    EXPECT_EQ(replica.sync().updates(), 2);
  });
}

TEST(GradientAveraging, CountsANonFiniteGradientAsZero) {
  const int bad = 3;  // segment in which rank 1 has an infinite element
  const GradientOf gradient = [](int rank, int64_t step, int segment, int64_t i) {
    const bool here = step == 1 && rank == 1 && segment == bad && i == 0;
    return here ? std::numeric_limits<float>::infinity() : small_integers(rank, step, segment, i);
  };
  const GradientOf counted = [](int rank, int64_t step, int segment, int64_t i) {
    const bool lost = step == 1 && rank == 1 && segment == bad;
    return lost ? 0.0f : small_integers(rank, step, segment, i);
  };
  std::vector<ReplicaOptions> all(1);
  for (const NamedToy& toy : exact_toys()) {
    all.push_back(all_by(toy.make));
    all.back().averaging.buckets.encode_bytes = 0;  // one segment a unit; a unit is lost whole
  }
  for (const ReplicaOptions& options : all) {
    const Results sums = sums_over_workers(3, options, 3, counted);
    run_workers(3, {.threads = 1}, [&](Worker& worker) {
      TestReplica replica(worker.communicator, options);
      for (int64_t step = 0; step < 3; ++step) {
        EXPECT_EQ(replica.step(step, gradient), Outcome::applied);
        EXPECT_EQ(replica.gradients(), sums[0][static_cast<size_t>(step)]);
        const bool named = step == 1 && worker.rank == 1;
        EXPECT_EQ(replica.sync().cost().nonfinite,
                  named ? std::vector<std::string>{"p2"} : std::vector<std::string>{});
      }
    });
  }
}

TEST(GradientAveraging, StopsAllRanksInTheSameStep) {
  run_workers(3, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, {});
    EXPECT_EQ(replica.step(0, small_integers), Outcome::applied);
    if (worker.rank == 2) replica.sync().request_stop();
    EXPECT_EQ(replica.step(1, small_integers), Outcome::stop);
    EXPECT_EQ(replica.gradients(), sums_over_workers(3, {}, 2)[0][1]);
  });
}

TEST(GradientAveraging, RunsTasksBetweenSteps) {
  run_workers(3, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, {});
    replica.step(0, small_integers);
    int64_t word = worker.rank;
    const Bytes data{reinterpret_cast<std::byte*>(&word), sizeof word};
    replica.sync().between_steps([&] {
      worker.communicator.all_reduce({&data, 1}, DType::i64, ReduceOp::sum)->wait();
    });
    EXPECT_EQ(word, 3);
    replica.step(1, small_integers);
  });
}

// ---------------------------------------------------------------- overlap

/// A gate that blocks the compute thread before a segment until the comm thread opens it.
class Gate {
 public:
  void open() {
    {
      std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// Holds the last gradient back until the first unit has reached `phase`. Without overlap it hangs.
void expect_overlap(const char* phase) {
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    Gate gate;
    ReplicaOptions options = all_by([&] {
      return toy_hooked(toy_owners(), [&](const char* now, const Unit& unit, const StepInfo&, int) {
        if (std::string(now) == phase && unit.spec.fields[0].slices[0].offset == 0) gate.open();
      });
    });
    options.trace.steps = 1;
    TestReplica replica(worker.communicator, options);
    double last_began = 0.0;
    replica.step(0, small_integers, 1.0, [&](const Segment& segment) {
      if (segment.id < 5) return;
      gate.pass();
      last_began = now_us();
    });
    EXPECT_EQ(replica.gradients(), sums_over_workers(2, options, 1)[0][0]);
    const Trace& trace = replica.trace();
    ASSERT_FALSE(trace.spans(Lane::encode).empty());
    EXPECT_EQ(trace.spans(Lane::encode)[0].name, "p5");  // the arena's first segment
    EXPECT_LT(trace.spans(Lane::encode)[0].begin_us, last_began);
    EXPECT_EQ(trace.spans(Lane::wait).size(), 1u);
    EXPECT_EQ(trace.spans(Lane::wire)[0].name, "status");
    EXPECT_EQ(trace.spans(Lane::wire)[1].name, "bucket 0");
    if (std::string(phase) == "decode") {
      EXPECT_LT(trace.spans(Lane::wire)[1].end_us, last_began);
    }
  });
}

TEST(GradientAveraging, EncodesWhileBackwardRuns) { expect_overlap("encode"); }

TEST(GradientAveraging, ExchangesWhileBackwardRuns) { expect_overlap("decode"); }

// ---------------------------------------------------------------- memory

TEST(GradientAveraging, AllocatesNothingAfterTheSecondStep) {
  for (const bool overlap : {true, false}) {
    ReplicaOptions options = everything_at_once();
    options.averaging.overlap = overlap;
    run_workers(3, {.threads = 1}, [&](Worker& worker) {
      TestReplica replica(worker.communicator, options);
      for (int64_t step = 0; step < 2; ++step) replica.step(step, small_integers);
      const MemoryStats before = replica.memory();
      for (int64_t step = 2; step < 30; ++step) replica.step(step, small_integers);
      EXPECT_EQ(replica.memory().system_allocations, before.system_allocations);
      EXPECT_EQ(replica.memory().used_bytes, before.used_bytes);
    });
  }
}

TEST(GradientAveraging, ReceivesAllBucketsIntoTheSameMemory) {
  const auto used_with = [](std::vector<Shape> shapes) {
    int64_t used = 0;
    ReplicaOptions options = all_by([] { return toy_guarded(100, nullptr); });  // an all-gather
    options.shapes = std::move(shapes);
    options.averaging.buckets.bucket_bytes = 4096;
    run_workers(4, {.threads = 1}, [&](Worker& worker) {
      TestReplica replica(worker.communicator, options);
      replica.step(0, small_integers);
      if (worker.rank == 0) used = replica.memory().used_bytes;
    });
    return used;
  };
  // each bucket costs its weights, gradients and outlet, but no inlets: 3 x 4096 and a few words
  const int64_t more = used_with({{1024}, {1024}, {1024}, {1024}}) - used_with({{1024}, {1024}});
  EXPECT_LE(more, 2 * (3 * 4096 + 512));
}

}  // namespace
}  // namespace wisp
