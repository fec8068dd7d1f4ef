// Tests that no step sends more than `wisp plan` prints as "at most", for every registered method,
// with gradients that are hard to encode and in a run.
#include <gtest/gtest.h>

#include <cmath>

#include "apps/lab/exchange_table.h"
#include "apps/setup/exchange_plan.h"
#include "core/random.h"
#include "distributed/exchange/step_plan.h"
#include "distributed/synchronizer_recipe.h"
#include "tests/support/error_of.h"
#include "tests/support/exchange_plans.h"
#include "tests/support/test_replica.h"
#include "tests/support/tiny_run.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// Gradients whose kind depends on the step: noise, magnitudes of all sizes, equal values, few
/// nonzeros, zeros, magnitudes that grow to the end, every second value zero.
float hard_gradient(int rank, int64_t step, int segment, int64_t i) {
  const auto id = static_cast<uint64_t>(64 * segment + rank);
  const Philox random(5, static_cast<uint64_t>(step), id);
  const auto noise = static_cast<float>(normal(random, static_cast<uint64_t>(i)));
  switch (step % 7) {
    case 1:
      return std::ldexp(noise, static_cast<int>(i % 100) - 60);
    case 2:
      return 1.0f;
    case 3:
      return i % 97 == rank ? 100.0f : 0.0f;
    case 4:
      return 0.0f;
    case 5:
      return std::exp(0.01f * static_cast<float>(i)) * noise;
    case 6:
      return i % 2 == 0 ? noise : 0.0f;
    default:
      return noise;
  }
}

constexpr double kRatio = 0.05;

/// The bytes that a worker sends for the status, an all-reduce of 16 bytes.
double status_bytes(int workers) { return 2.0 * (workers - 1) / workers * 16.0; }

/// A bound of the rounding: a reduction's shares are whole elements of at most 8 bytes, and a unit
/// has at most 4 reductions.
double rounding_bytes(int workers, size_t units) {
  return 8.0 * (workers - 2) * static_cast<double>(4 * units + 8);
}

class PlannedBytes : public testing::TestWithParam<std::string> {
 protected:
  static std::vector<Method> methods(int workers) {
    const bool adam = GetParam() == "onebit_adam", oktopk = GetParam() == "oktopk";
    std::vector<Method> made;
    made.push_back({GetParam(),
                    make_method(GetParam(),
                                adam     ? "compression.freeze_step = 1"
                                : oktopk ? "compression.start_after = 0"
                                         : "",
                                {.workers = workers, .momentum = 0.9}),
                    Scope::layer});
    return made;
  }
  static ExchangePlan plan(int workers, std::span<const Segment> segments, double ratio = kRatio,
                           bool guard = false) {
    Methods planned;
    planned.methods = methods(workers);
    planned.names = GetParam();
    planned.method_of.assign(segments.size(), 0);
    planned.ratio = [ratio](double) { return ratio; };
    TrainOptions options;
    options.workers = workers;
    options.guard = guard;
    options.buckets.bucket_bytes = 1024;
    return plan_exchange(planned, options, segments);
  }
};

TEST_P(PlannedBytes, AreNotExceededInAnyStep) {
  for (const int workers : {2, 4}) {
    const int64_t steps = methods(workers)[0].compressor->period() > 8 ? 67 : 15;
    ReplicaOptions options;
    options.averaging.guard = false;
    options.averaging.ratio = [](double) { return kRatio; };
    options.methods = [workers] { return methods(workers); };
    run_workers(workers, {.threads = 1}, [&](Worker& worker) {
      TestReplica replica(worker.communicator, options);
      const PhasePlan phase = plan(workers, replica.parameters().segments()).phases.back();
      const double most = phase.bytes_most + status_bytes(workers) +
                          rounding_bytes(workers, static_cast<size_t>(phase.units));
      double seen = 0.0;
      for (int64_t step = 0; step < steps; ++step) {
        replica.step(step, hard_gradient);
        if (replica.sync().compressed_units() == 0) continue;
        const auto sent = static_cast<double>(replica.sync().cost().bytes_sent);
        EXPECT_LE(sent, most) << "step " << step << " of " << workers << " workers";
        seen = std::max(seen, sent);
      }
      EXPECT_GT(seen, 0.0);
    });
  }
}

/// With the guard, the mean over a period is at most dense, and all ranks decide alike in all steps
/// of the period: as the plan says.
TEST_P(PlannedBytes, AreWithTheGuardAtMostDenseInTheMean) {
  const std::vector<Segment> segments =
      segments_of({{.name = "large", .shape = {40, 60}}, {.name = "small", .shape = {9, 7}}});
  for (const int workers : {1, 2, 3, 4, 8, 16, 64}) {
    for (const double ratio : {0.001, 0.05, 0.1, 0.25, 0.3, 0.32, 0.34, 0.5, 0.9}) {
      SCOPED_TRACE(concat(workers, " workers, ratio ", ratio));
      const ExchangePlan planned = plan(workers, segments, ratio, true);
      const PhasePlan& phase = planned.phases.back();
      EXPECT_LE(phase.bytes_sent, phase.bytes_dense + 1e-6);
      EXPECT_EQ(remarks_on(planned, {"single steps"}), phase.bytes_most > phase.bytes_dense + 0.5);
      const auto compressor = std::move(methods(workers)[0].compressor);
      ASSERT_NE(planned.layers[0].unit, planned.layers[1].unit);
      for (const Segment& segment : segments) {
        const std::vector<Field> fields = {field_of(segment)};
        const UnitSpec spec{fields, segment.numel};
        std::vector<Message> messages;
        for (int64_t step = 2; step < 3 + compressor->period(); ++step) {
          for (const int rank : {0, workers / 2, workers - 1}) {
            const StepInfo info{.step = step,
                                .applied = step,
                                .rank = rank,
                                .ranks = workers,
                                .summands = workers,
                                .ratio = ratio};
            if (!compressor->started(info)) continue;
            EXPECT_EQ(plan_unit(*compressor, compressor->traits(), spec, 4 * segment.numel, info,
                                false, true, messages),
                      planned.layers[static_cast<size_t>(segment.id)].path)
                << segment.name << ", step " << step << ", rank " << rank;
          }
        }
      }
    }
  }
}

/// Every size is told as it is, or refused before anything is allocated.
TEST_P(PlannedBytes, OfHugeParametersAreRightOrRefused) {
  constexpr int64_t kMost = (int64_t{1} << 32) - 1;  // elements, and bytes of a told size
  for (const int64_t rows : {1 << 14, 1 << 15, (1 << 16) - 1, 1 << 16, 1 << 20}) {
    for (const double ratio : {0.001, 0.9}) {
      SCOPED_TRACE(concat(rows, " rows, ratio ", ratio));
      const std::vector<Segment> segments =
          segments_of({{.name = "huge", .shape = {rows, 1 << 16}}});
      const int64_t numel = segments[0].numel;
      double planned = 0.0;
      const std::string error =
          error_of([&] { planned = plan(2, segments, ratio).phases.back().bytes_sent; });
      if (error != "no error") {
        EXPECT_NE(error.find("compression.policy"), std::string::npos) << error;
        EXPECT_NE(error.find(std::to_string(numel)), std::string::npos) << error;
        continue;
      }
      EXPECT_LE(numel, kMost);
      const auto compressor = std::move(methods(2)[0].compressor);
      const std::vector<Field> fields = {field_of(segments[0])};
      const UnitSpec spec{fields, numel};
      StepInfo info{.step = 2, .applied = 2, .ranks = 2, .summands = 2, .ratio = ratio};
      for (int round = 0; round < compressor->rounds(spec, info); ++round) {
        const Message message = compressor->message(spec, info, round);
        EXPECT_GE(message.bytes, 0);
        EXPECT_TRUE(!message.variable || message.bytes <= kMost) << message.bytes;
      }
      EXPECT_GE(planned, 0.0);
      if (GetParam() == "fp16") {
        EXPECT_EQ(planned, 2.0 * static_cast<double>(numel));
      }
    }
  }
}

/// Sparse lists number the elements of the model's arenas, too.
TEST(PlannedSizes, OfASparseMethodKnowThePlaceInTheModel) {
  const int64_t most = (int64_t{1} << 32) - 1;
  const StepInfo info{.ranks = 2, .summands = 2, .ratio = 0.01};
  for (const char* method : {"topk", "threshold", "dgc", "gtopk", "oktopk"}) {
    const auto bytes_at = [&](int64_t end) {
      const std::vector<Field> fields = {{.slices = {{end - 100, 100}}, .numel = 100}};
      const auto compressor = make_method(method, "", {.workers = 2, .momentum = 0.9});
      return compressor->message({fields, 100}, info, compressor->rounds({fields, 100}, info) - 1)
          .bytes;
    };
    EXPECT_EQ(bytes_at(most), bytes_at(100)) << method;
    const std::string error = error_of([&] { bytes_at(most + 1); });
    EXPECT_NE(error.find("ends at element 4294967296 of the model"), std::string::npos) << error;
  }
}

std::vector<std::string> compressors() {
  std::vector<std::string> names = shipped_methods();
  std::erase(names, "none");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Shipped, PlannedBytes, testing::ValuesIn(compressors()),
                         [](const auto& test) { return test.param; });

class PlannedRun : public testing::TestWithParam<std::string> {};

TEST_P(PlannedRun, SendsNoMoreInAnyStep) {
  const Overrides overrides = method_overrides(GetParam()) + Overrides{"workers=4"};
  const Prepared run(tiny_config(overrides));
  const PhasePlan phase = run.exchange().phases.back();
  const double beside = status_bytes(4) + rounding_bytes(4, static_cast<size_t>(phase.units));
  with_replicas(tiny_config(overrides), [&](ReplicaTest& test) {
    const auto* averaging = dynamic_cast<GradientAveraging*>(&test.replica.synchronizer());
    for (int64_t step = 0; step < 9; ++step) {
      test.steps(step, 1);
      const bool warm_up = averaging && averaging->compressed_units() == 0;
      EXPECT_LE(static_cast<double>(test.replica.synchronizer().cost().bytes_sent),
                (warm_up ? phase.bytes_dense : phase.bytes_most) + beside)
          << step;
    }
  });
}

std::vector<std::string> all_methods() {
  std::vector<std::string> names = shipped_methods();
  for (const auto& [name, entry] : SynchronizerRegistry::instance().entries())
    names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Shipped, PlannedRun, testing::ValuesIn(all_methods()),
                         [](const auto& test) { return test.param; });

/// A plan with a single figure has the same bytes in all steps.
TEST(ExchangeTable, SaysWhichIsAMean) {
  for (const std::string method : {"oktopk", "local_sgd", "topk"}) {
    const ExchangePlan plan =
        Prepared(tiny_config(method_overrides(method) + Overrides{"workers=4"})).exchange();
    const PhasePlan& phase = plan.phases.back();
    const std::string table = exchange_table(plan, 4);
    EXPECT_NE(table.find(concat("at most ", static_cast<int64_t>(std::round(phase.bytes_most)),
                                " bytes sent a step by each of 4 workers")),
              std::string::npos)
        << table;
    EXPECT_EQ(table.find(" on average, dense ") != std::string::npos, method != "topk") << table;
    EXPECT_EQ(phase.bytes_most > phase.bytes_sent, method != "topk");
  }
}

}  // namespace
}  // namespace wisp
