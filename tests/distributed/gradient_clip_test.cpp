#include "distributed/gradient_clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/test_replica.h"
#include "tests/support/toy_compressors.h"

namespace wisp {
namespace {

// The factor and then the product are rounded to f32: two roundings of 6e-8.
constexpr double kTolerance = 3e-7;

double norm_of(const std::vector<double>& values) {
  double squares = 0.0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

/// Scales `values` down to the norm `bound`.
void bring_down(std::vector<double>& values, double bound) {
  const double norm = norm_of(values);
  if (norm <= bound) return;
  for (double& value : values) value *= bound / norm;
}

/// A rank's gradient by segments, clipped to options.norm * scale, per layer or as a whole.
std::vector<std::vector<double>> clipped(std::vector<std::vector<double>> segments,
                                         ClipOptions options, double scale) {
  std::vector<double> all;
  for (const auto& segment : segments) all.insert(all.end(), segment.begin(), segment.end());
  const double whole = norm_of(all);
  for (auto& segment : segments) {
    const double share = static_cast<double>(segment.size()) / static_cast<double>(all.size());
    if (options.per_layer) {
      bring_down(segment, options.norm * scale * std::sqrt(share));
    } else if (whole > options.norm * scale) {
      for (double& value : segment) value *= options.norm * scale / whole;
    }
  }
  return segments;
}

std::vector<std::vector<double>> gradient_of(const ReplicaOptions& options, int rank) {
  std::vector<std::vector<double>> segments;
  for (size_t id = 0; id < options.shapes.size(); ++id) {
    segments.emplace_back();
    const int64_t numel = options.shapes[options.shapes.size() - 1 - id].numel();
    for (int64_t i = 0; i < numel; ++i)
      segments.back().push_back(small_integers(rank, 0, static_cast<int>(id), i));
  }
  return segments;
}

using Segments = std::vector<std::vector<double>>;

void add(Segments& sum, const Segments& other) {
  for (size_t s = 0; s < sum.size(); ++s) {
    for (size_t i = 0; i < sum[s].size(); ++i) sum[s][i] += other[s][i];
  }
}

void expect_near(const std::vector<float>& values, const Segments& expected) {
  size_t at = 0;
  for (const auto& segment : expected) {
    for (const double value : segment) {
      ASSERT_NEAR(values[at], value, kTolerance * 50) << at;  // sums of a few values up to 20
      ++at;
    }
  }
}

TEST(GradientClip, BoundsTheMeanIfNoMethodClipsItself) {
  for (const bool per_layer : {false, true}) {
    for (const int workers : {1, 3}) {
      ReplicaOptions options;
      options.averaging.clip = {.norm = 40.0, .per_layer = per_layer};
      Segments expected = gradient_of(options, 0);
      for (int rank = 1; rank < workers; ++rank) add(expected, gradient_of(options, rank));
      expected = clipped(expected, options.averaging.clip, 1.0);
      for (const auto& of_rank : run_replicas(workers, options, 1))
        expect_near(of_rank[0], expected);
    }
  }
}

TEST(GradientClip, BoundsEachWorkersShareIfAMethodClipsItself) {
  for (const bool per_layer : {false, true}) {
    for (const int workers : {1, 3}) {
      ReplicaOptions options;
      options.averaging.clip = {.norm = 40.0, .per_layer = per_layer};
      options.averaging.guard = false;
      options.methods = all_by(toy_owners).methods;
      options.method_of = [](const Segment& segment) { return segment.id < 3 ? 0 : kDense; };
      const double scale = 1.0 / std::sqrt(workers);
      Segments expected = clipped(gradient_of(options, 0), options.averaging.clip, scale);
      for (int rank = 1; rank < workers; ++rank)
        add(expected, clipped(gradient_of(options, rank), options.averaging.clip, scale));
      for (const auto& of_rank : run_replicas(workers, options, 1))
        expect_near(of_rank[0], expected);
    }
  }
}

TEST(GradientClip, TakesTheFactorOfAWorkersOwnGradient) {
  constexpr int kRanks = 3;
  ReplicaOptions options;  // dense by default
  options.averaging.clip = {.norm = 20.0, .where = ClipWhere::local, .local_factor = 1.5};
  const double scale = 1.5 / kRanks;  // a worker's gradient is kRanks times its share
  Segments expected = clipped(gradient_of(options, 0), options.averaging.clip, scale);
  for (int rank = 1; rank < kRanks; ++rank)
    add(expected, clipped(gradient_of(options, rank), options.averaging.clip, scale));
  for (const auto& of_rank : run_replicas(kRanks, options, 1)) expect_near(of_rank[0], expected);
}

TEST(GradientClip, ScalesSquaresWithTheirGradients) {
  TestContext test({.compute = DType::f32});
  Parameter a{"a", {2}, {}, true, {}};
  FlatParameters parameters(test.context, {&a}, {});
  float* gradient = parameters.grad().data<float>();
  float* square = parameters.state("square").data<float>();
  gradient[0] = square[0] = 6.0f;
  gradient[1] = square[1] = 8.0f;
  GradientClip clip(test.context, parameters, {.norm = 5.0}, 1);
  const int all[] = {0};
  clip.measure(all);
  clip.clip(all, parameters.state("square"));
  EXPECT_FLOAT_EQ(gradient[0], 3.0f);
  EXPECT_FLOAT_EQ(square[0], 1.5f);
  EXPECT_FLOAT_EQ(square[1], 2.0f);
}

TEST(GradientClip, LeavesOutWhatSumsCouldNotHold) {
  TestContext test({.compute = DType::f32});
  Parameter a{"a", {1}, {}, true, {}}, b{"b", {1}, {}, true, {}};
  FlatParameters parameters(test.context, {&b, &a}, {});
  float& first = parameters.grad().data<float>()[0];
  float& second = parameters.grad().data<float>()[parameters.segments()[1].offset];
  first = 2.0f;
  second = 0x1.1p96f;
  const int all[] = {0, 1};
  GradientClip clip(test.context, parameters, {.norm = 1.0}, 1);
  clip.measure(all);
  StepCost cost;
  EXPECT_TRUE(clip.check(0, cost));
  EXPECT_FALSE(clip.check(1, cost));
  EXPECT_EQ(cost.too_large, std::vector{parameters.segment(1).name});
  EXPECT_TRUE(cost.nonfinite.empty());
  clip.clip(all);
  EXPECT_EQ(first, 1.0f);  // scaled from 2: the other is left out of the norm
  EXPECT_EQ(second, 0x1.1p96f);
}

/// A mean may be larger than a single worker's gradient.
TEST(GradientClip, ClipsAMeanOfAnySize) {
  TestContext test({.compute = DType::f32});
  Parameter a{"a", {1}, {}, true, {}};
  FlatParameters parameters(test.context, {&a}, {});
  float& mean = parameters.grad().data<float>()[0];
  mean = 0x1.1p96f;
  const int all[] = {0};
  GradientClip clip(test.context, parameters, {.norm = 1.0}, 1,
                    std::numeric_limits<double>::infinity());
  clip.measure(all);
  clip.clip(all);
  EXPECT_EQ(mean, 1.0f);
}

TEST(GradientClip, LeavesASmallGradientAsItIs) {
  for (const bool per_layer : {false, true}) {
    ReplicaOptions options;
    options.averaging.clip = {.norm = 1e6, .per_layer = per_layer};
    EXPECT_EQ(run_replicas(2, options, 1), sums_over_workers(2, options, 1));
  }
}

TEST(GradientClip, LeavesNonFiniteSegmentsOutOfTheNorm) {
  TestContext test({.compute = DType::f32});
  Parameter a{"a", {2}, {}, true, {}}, b{"b", {1}, {}, true, {}};
  FlatParameters parameters(test.context, {&b, &a}, {});
  float* gradient = parameters.grad().data<float>();
  const int64_t second = parameters.segments()[1].offset;
  gradient[0] = 3.0f;
  gradient[1] = 4.0f;
  gradient[second] = std::numeric_limits<float>::quiet_NaN();
  GradientClip clip(test.context, parameters, {.norm = 1.0}, 1);
  const int all[] = {0, 1};
  clip.measure(all);
  StepCost cost;
  EXPECT_TRUE(clip.check(0, cost));
  EXPECT_FALSE(clip.check(1, cost));
  EXPECT_EQ(cost.nonfinite, std::vector{parameters.segment(1).name});
  EXPECT_TRUE(cost.too_large.empty());
  clip.clip(all);
  EXPECT_FLOAT_EQ(gradient[0], 0.6f);
  EXPECT_FLOAT_EQ(gradient[1], 0.8f);
  EXPECT_TRUE(std::isnan(gradient[second]));
  clip.clear(1);
  EXPECT_EQ(gradient[second], 0.0f);
}

TEST(GradientClip, NeedsTheWholeNormOnlyWithoutLayers) {
  TestContext test({.compute = DType::f32});
  Parameter a{"a", {2}, {}, true, {}};
  FlatParameters parameters(test.context, {&a}, {});
  EXPECT_TRUE(GradientClip(test.context, parameters, {.norm = 1.0}, 1).needs_whole_norm());
  EXPECT_FALSE(GradientClip(test.context, parameters, {.norm = 1.0, .per_layer = true}, 1)
                   .needs_whole_norm());
  EXPECT_FALSE(GradientClip(test.context, parameters, {}, 1).needs_whole_norm());
}

}  // namespace
}  // namespace wisp
