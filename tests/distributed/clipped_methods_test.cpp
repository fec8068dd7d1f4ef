// Tests of clipping with every registered method at its defaults. A new method is tested as soon as
// it is registered.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "core/random.h"
#include "tests/support/test_replica.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

constexpr int kWorkers = 3;
constexpr int64_t kSteps = 24;

/// Gradients of one direction, with noise. Residuals add up to more than any single gradient.
float biased(int rank, int64_t step, int segment, int64_t i) {
  const auto id = static_cast<uint64_t>(64 * segment + rank);
  const Philox random(5, static_cast<uint64_t>(step), id);
  return 1.0f + 0.5f * static_cast<float>(normal(random, static_cast<uint64_t>(i)));
}

class ClippedMethods : public testing::TestWithParam<std::string> {
 protected:
  static ReplicaOptions options(const ClipOptions& clip) {
    ReplicaOptions options = all_by([] {
      const bool adam = GetParam() == "onebit_adam", oktopk = GetParam() == "oktopk";
      return make_method(GetParam(),
                         adam     ? "compression.freeze_step = 1"
                         : oktopk ? "compression.start_after = 0"
                                  : "",
                         {.workers = kWorkers, .momentum = 0.9, .weight_decay = 1e-4});
    });
    options.averaging.clip = clip;
    options.averaging.ratio = [](double) { return 0.05; };
    return options;
  }

  struct Outcome {
    Results left;               // gradient arena after each step
    std::vector<double> given;  // clipped gradients by element, summed over workers and steps
    std::vector<double> kept;   // residuals after the last step, summed over workers
    std::vector<double> applied;
  };

  static Outcome run(const ClipOptions& clip, const GradientOf& gradient = biased) {
    Outcome outcome;
    outcome.left.resize(kWorkers);
    std::mutex mutex;
    run_workers(kWorkers, {.threads = 1}, [&](Worker& worker) {
      TestReplica replica(worker.communicator, options(clip));
      for (int64_t step = 0; step < kSteps; ++step) {
        replica.step(step, gradient);
        outcome.left[static_cast<size_t>(worker.rank)].push_back(replica.gradients());
      }
      const std::scoped_lock lock(mutex);
      for (const char* name : {"residual", "owner_residual"}) {
        const std::vector<float> kept = elements_of(replica, name);
        outcome.kept.resize(kept.size());
        for (size_t i = 0; i < kept.size(); ++i) outcome.kept[i] += static_cast<double>(kept[i]);
      }
    });
    return outcome;
  }

  /// A saved state of all elements, with zeros where no segment saved it.
  static std::vector<float> elements_of(TestReplica& replica, const std::string& name) {
    std::vector<float> values;
    const std::vector<SavedState> states = replica.sync().state();
    for (const Segment& segment : replica.parameters().segments()) {
      std::vector<float> own(static_cast<size_t>(segment.numel));
      for (const SavedState& state : states) {
        const TensorPart part =
            part_of_name(state.name).value_or(TensorPart{state.name, 0, segment.numel});
        if (part.whole == name + "/" + segment.name)
          std::copy_n(state.tensor.data<float>(), part.end - part.begin, own.begin() + part.begin);
      }
      values.insert(values.end(), own.begin(), own.end());
    }
    return values;
  }

  /// The gradients of a worker in a step, element after element.
  static std::vector<double> gradient_of(int rank, int64_t step) {
    const std::vector<Shape> shapes = ReplicaOptions{}.shapes;
    std::vector<double> values;
    for (size_t id = 0; id < shapes.size(); ++id) {
      for (int64_t i = 0; i < shapes[shapes.size() - 1 - id].numel(); ++i)
        values.push_back(static_cast<double>(biased(rank, step, static_cast<int>(id), i)));
    }
    return values;
  }
  static double norm_of(const std::vector<double>& values) {
    double squares = 0.0;
    for (const double value : values) squares += value * value;
    return std::sqrt(squares);
  }
};

using ClippedResiduals = ClippedMethods;

TEST_P(ClippedMethods, AreAsTheyWereUnderABoundThatNoGradientReaches) {
  double norm = 0.0;
  for (int64_t step = 0; step < kSteps; ++step) {
    std::vector<double> mean = gradient_of(0, step);
    for (int rank = 0; rank < kWorkers; ++rank) {
      const std::vector<double> own = gradient_of(rank, step);
      norm = std::max(norm, std::sqrt(double{kWorkers}) * norm_of(own));
      for (size_t i = 0; rank > 0 && i < own.size(); ++i) mean[i] += own[i];
    }
    norm = std::max(norm, norm_of(mean));
  }
  norm *= 1.01;  // margin above the rounding of 16-bit casts
  const Results expected = run({}).left;
  EXPECT_EQ(run({.norm = norm}).left, expected);
  EXPECT_EQ(run({.norm = norm, .where = ClipWhere::local}).left, expected);
}

/// Applied gradients and kept residuals add up to the clipped gradients.
TEST_P(ClippedResiduals, LoseNothingUnderABoundThatBites) {
  const double norm = 0.5 * std::sqrt(double{kWorkers}) * norm_of(gradient_of(0, 0));
  const Outcome outcome = run({.norm = norm});
  std::vector<double> missing(outcome.kept.size());
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int rank = 0; rank < kWorkers; ++rank) {
      const std::vector<double> own = gradient_of(rank, step);
      const double factor = norm / std::sqrt(double{kWorkers}) / norm_of(own);
      ASSERT_LT(factor, 0.6);
      for (size_t i = 0; i < own.size(); ++i) missing[i] += factor * own[i];
    }
    const std::vector<float>& applied = outcome.left[0][static_cast<size_t>(step)];
    for (size_t i = 0; i < applied.size(); ++i) missing[i] -= static_cast<double>(applied[i]);
  }
  for (size_t i = 0; i < missing.size(); ++i) {
    // f32 roundings of 24 · 3 additions to numbers below 100
    ASSERT_NEAR(missing[i], outcome.kept[i], 2e-3) << i;
  }
}

/// Finite gradients whose sums would overflow count as zero and are named, and nothing overflows.
TEST_P(ClippedMethods, StayFiniteWhereSumsOfGradientsWouldNot) {
  const auto huge = [](int rank, int64_t step, int segment, int64_t i) {
    const bool overflows = step % 3 == 1 && segment % 2 == 0;
    return overflows ? std::numeric_limits<float>::max() : biased(rank, step, segment, i);
  };
  run_workers(kWorkers, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, options({}));
    for (int64_t step = 0; step < kSteps; ++step) {
      replica.step(step, huge);
      for (const float value : replica.gradients()) ASSERT_TRUE(std::isfinite(value)) << step;
      EXPECT_EQ(replica.sync().cost().too_large.size(), step % 3 == 1 ? 3 : 0);
      EXPECT_EQ(replica.sync().cost().nonfinite.size(), 0);
    }
    for (const SavedState& state : replica.sync().state()) {
      if (state.tensor.dtype() != DType::f32) continue;
      for (int64_t i = 0; i < state.tensor.numel(); ++i)
        ASSERT_TRUE(std::isfinite(state.tensor.data<float>()[i])) << state.name;
    }
  });
}

std::vector<std::string> registered() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : CompressorRegistry::instance().entries()) {
    if (name != "none") names.push_back(name);
  }
  return names;
}

/// The methods that keep residuals of gradients.
std::vector<std::string> with_residual() {
  const std::vector<Field> fields = layer_fields({100});
  std::vector<std::string> names;
  for (const std::string& name : registered()) {
    const auto method = make_method(name, "");
    const auto states = method->state({fields, 100}, kWorkers);
    if (!states.empty() && states[0].name == "residual" &&
        method->traits().result == UpdateRule::gradient)
      names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registered, ClippedMethods, testing::ValuesIn(registered()),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Registered, ClippedResiduals, testing::ValuesIn(with_residual()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace wisp
