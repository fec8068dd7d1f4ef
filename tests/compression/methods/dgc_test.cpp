#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/scalar_selection.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

StepInfo info_of(int64_t step, double ratio, int workers = 1, int rank = 0) {
  StepInfo info;
  info.step = info.applied = step;
  info.ratio = ratio;
  info.ranks = info.summands = workers;
  info.rank = rank;
  info.seed = 11;
  return info;
}

UnitRig dgc_rig(std::vector<Field> fields, const std::string& toml, CompressorSetup setup) {
  return UnitRig(std::move(fields), make_method("dgc", toml, setup));
}

// ---------------------------------------------------------------- golden vectors

struct GoldenStep {
  std::vector<float> gradient;
  int sent;
  float value;
  std::vector<float> u, v;  // after the step
};

void follow(const std::string& toml, bool nesterov, const std::vector<GoldenStep>& steps) {
  UnitRig rig = dgc_rig(layer_fields({4}), toml, {.momentum = 0.9, .nesterov = nesterov});
  for (size_t step = 0; step < steps.size(); ++step) {
    const GoldenStep& golden = steps[step];
    std::copy(golden.gradient.begin(), golden.gradient.end(), rig.gradient());
    const StepInfo info = info_of(static_cast<int64_t>(step), 0.25);
    rig.decode(info, {rig.encode(info)});
    for (int i = 0; i < 4; ++i) {
      // 1e-6: a few roundings of numbers below 8
      const float result = i == golden.sent ? golden.value : 0.0f;
      EXPECT_NEAR(rig.gradient()[i], result, 1e-6) << "step " << step << ", element " << i;
      if (golden.u.empty()) continue;
      EXPECT_NEAR(rig.momentum()[i], golden.u[static_cast<size_t>(i)], 1e-6) << "u, step " << step;
      EXPECT_NEAR(rig.residual()[i], golden.v[static_cast<size_t>(i)], 1e-6) << "v, step " << step;
    }
  }
}

const std::vector<float> g0 = {1, -2, 0.5, 0.1f};
const std::vector<float> g1 = {0.5, 0.5, -1.5, 0.2f};
const std::vector<float> g2 = {-0.25, 1, -1, 0.4f};

// Derived by hand from Lin et al. 2018, algorithm 4, and the authors' Nesterov form.
TEST(Dgc, FollowsTheGoldenVectors) {
  follow("", false,
         {{g0, 1, -2.0f, {1, 0, 0.5f, 0.1f}, {1, 0, 0.5f, 0.1f}},
          {g1, 0, 2.4f, {0, 0.5f, -1.05f, 0.29f}, {0, 0.5f, -0.55f, 0.39f}},
          {g2, 2, -2.495f, {-0.25f, 1.45f, 0, 0.661f}, {-0.25f, 1.95f, 0, 1.051f}}});
}

TEST(Dgc, FollowsTheGoldenVectorsWithoutMasking) {
  follow("compression.masking = false", false,
         {{g0, 1, -2.0f, {}, {}},
          {g1, 0, 2.4f, {}, {}},
          {g2, 2, -2.495f, {1.01f, -0.17f, -1.945f, 0.661f}, {1.01f, -1.47f, 0, 1.051f}}});
}

TEST(Dgc, FollowsTheGoldenVectorsWithNesterov) {
  follow("", true,
         {{g0, 1, -3.8f, {0.9f, 0, 0.45f, 0.09f}, {1.9f, 0, 0.95f, 0.19f}},
          {g1, 0, 3.66f, {0, 0.45f, -0.945f, 0.261f}, {0, 0.95f, -1.495f, 0.651f}},
          {g2, 2, -4.2455f, {-0.225f, 1.305f, 0, 0.5949f}, {-0.475f, 3.255f, 0, 1.6459f}}});
}

TEST(Dgc, FollowsTheGoldenVectorsWithNesterovWithoutMasking) {
  follow("compression.masking = false", true,
         {{g0, 1, -3.8f, {}, {}},
          {g1, 0, 3.66f, {}, {}},
          {g2, 2, -4.2455f, {0.909f, -0.153f, -1.7505f, 0.5949f}, {0.659f, 0.177f, 0, 1.6459f}}});
}

// ---------------------------------------------------------------- the paper, in scalars

/// A plain model of one worker of Lin et al. 2018, algorithm 4, on one field.
struct ScalarWorker {
  float m, decay;
  bool nesterov, masking;
  std::vector<float> u, v;

  /// The values sent, and zero elsewhere.
  std::vector<float> step(const std::vector<float>& gradient, const std::vector<float>& w,
                          const ScalarSelection& select) {
    for (size_t i = 0; i < u.size(); ++i) {
      const float g = gradient[i] + decay * w[i];
      u[i] = nesterov ? m * (u[i] + g) : m * u[i] + g;
      v[i] += nesterov ? u[i] + g : u[i];
    }
    std::vector<float> sent(u.size(), 0.0f);
    for (const size_t i : select(v)) {
      std::swap(sent[i], v[i]);
      if (masking) u[i] = 0.0f;
    }
    return sent;
  }
};

constexpr int kWorkers = 3;
constexpr float kRate = 0.1f;

float gradient_of(int64_t step, int rank, int64_t i, float w) {
  const Philox noise(2, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
  return (0.2f * w + noise.uniform(static_cast<uint64_t>(i)) - 0.5f) / kWorkers;
}

/// Compares weights, u and v with those of scalar models, over 50 steps of 3 workers.
void compare_with_scalars(const std::string& toml, bool nesterov, bool masking, double ratio,
                          bool sampled = false) {
  const std::vector<int64_t> sizes = {700, 33, 5000};
  const CompressorSetup setup{
      .workers = kWorkers, .momentum = 0.9, .nesterov = nesterov, .weight_decay = 0.01};
  std::deque<UnitRig> rigs;
  std::vector<std::vector<ScalarWorker>> scalars;  // by worker and field
  for (int rank = 0; rank < kWorkers; ++rank) {
    std::vector<Field> fields = layer_fields(sizes);
    fields[1].decay = false;
    scalars.emplace_back();
    for (const Field& field : fields) {
      const std::vector<float> zeros(static_cast<size_t>(field.numel), 0.0f);
      const auto decay = static_cast<float>(field.decay ? 0.01 / kWorkers : 0.0);
      scalars.back().push_back({0.9f, decay, nesterov, masking, zeros, zeros});
    }
    rigs.emplace_back(std::move(fields), make_method("dgc", toml, setup));
  }
  std::vector<std::vector<float>> weight;
  for (const int64_t size : sizes) weight.emplace_back(static_cast<size_t>(size), 0.5f);

  for (int64_t step = 0; step < 50; ++step) {
    const StepInfo info = info_of(step, ratio, kWorkers);
    std::vector<PayloadBytes> payloads;
    for (int rank = 0; rank < kWorkers; ++rank) {
      UnitRig& rig = rigs[static_cast<size_t>(rank)];
      for (size_t f = 0; f < sizes.size(); ++f) {
        const int64_t offset = rig.fields[f].slices[0].offset;
        for (int64_t i = 0; i < sizes[f]; ++i) {
          const float w = weight[f][static_cast<size_t>(i)];
          rig.weight()[offset + i] = w;
          rig.gradient()[offset + i] = gradient_of(step, rank, offset + i, w);
        }
      }
      payloads.push_back(rig.encode(info));
    }
    for (UnitRig& rig : rigs) rig.decode(info, payloads);
    for (size_t f = 0; f < sizes.size(); ++f) {
      const int64_t offset = rigs[0].fields[f].slices[0].offset;
      std::vector<float> sum(weight[f].size(), 0.0f);
      for (int rank = 0; rank < kWorkers; ++rank) {
        ScalarWorker& scalar = scalars[static_cast<size_t>(rank)][f];
        std::vector<float> gradient;
        for (size_t i = 0; i < sum.size(); ++i) {
          gradient.push_back(
              gradient_of(step, rank, offset + static_cast<int64_t>(i), weight[f][i]));
        }
        const auto k = static_cast<size_t>(std::ceil(ratio * static_cast<double>(sum.size())));
        const Philox random(info.seed, static_cast<uint64_t>(step), rigs[0].fields[f].key);
        const std::vector<float> sent = scalar.step(gradient, weight[f], [&](const auto& v) {
          return sampled ? select_sampled(v, k, random) : select_largest(v, k);
        });
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += sent[i];
      }
      for (size_t i = 0; i < sum.size(); ++i) {
        const int64_t at = offset + static_cast<int64_t>(i);
        for (UnitRig& rig : rigs)  // exact: the same operations in the same order
          ASSERT_EQ(rig.gradient()[at], sum[i]) << "step " << step << ", element " << at;
        weight[f][i] -= kRate * sum[i];
      }
    }
  }
  for (int rank = 0; rank < kWorkers; ++rank) {
    UnitRig& rig = rigs[static_cast<size_t>(rank)];
    for (size_t f = 0; f < sizes.size(); ++f) {
      const ScalarWorker& scalar = scalars[static_cast<size_t>(rank)][f];
      for (size_t i = 0; i < scalar.u.size(); ++i) {
        const int64_t at = rig.fields[f].slices[0].offset + static_cast<int64_t>(i);
        ASSERT_EQ(rig.momentum()[at], scalar.u[i]);
        ASSERT_EQ(rig.residual()[at], scalar.v[i]);
      }
    }
  }
}

TEST(Dgc, FollowsAScalarModelOfThePaper) { compare_with_scalars("", false, true, 0.01); }

TEST(Dgc, FollowsAScalarModelWithNesterovWithoutMasking) {
  compare_with_scalars("compression.masking = false", true, false, 0.05);
}

TEST(Dgc, FollowsAScalarModelWithASampledThreshold) {
  compare_with_scalars("compression.selection = 'sampled'", false, true, 0.01, true);
}

// ---------------------------------------------------------------- laws

TEST(Dgc, AtRatioOneWithoutMaskingIsDenseMomentum) {
  const CompressorSetup setup{.workers = kWorkers, .momentum = 0.9};
  std::deque<UnitRig> rigs;
  for (int rank = 0; rank < kWorkers; ++rank)
    rigs.emplace_back(layer_fields({300}),
                      make_method("dgc", "compression.masking = false", setup));
  std::vector<double> momentum(300, 0.0);
  for (int64_t step = 0; step < 20; ++step) {
    const StepInfo info = info_of(step, 1.0, kWorkers);
    std::vector<PayloadBytes> payloads;
    for (int rank = 0; rank < kWorkers; ++rank) {
      UnitRig& rig = rigs[static_cast<size_t>(rank)];
      for (int64_t i = 0; i < 300; ++i) rig.gradient()[i] = gradient_of(step, rank, i, 1.0f);
      payloads.push_back(rig.encode(info));
    }
    for (UnitRig& rig : rigs) rig.decode(info, payloads);
    for (int64_t i = 0; i < 300; ++i) {
      double mean = 0.0;
      for (int rank = 0; rank < kWorkers; ++rank) mean += gradient_of(step, rank, i, 1.0f);
      double& m = momentum[static_cast<size_t>(i)];
      m = 0.9 * m + mean;
      // the dense update is lr * m; f32 rounding of three momenta of about 1
      ASSERT_NEAR(rigs[0].gradient()[i], m, 2e-6);
      ASSERT_EQ(rigs[0].residual()[i], 0.0f);
    }
  }
}

TEST(Dgc, LosesNothingWithoutMomentumAndMasking) {
  for (const char* values : {"f32", "f16"}) {
    UnitRig rig =
        dgc_rig(layer_fields({2000}),
                concat("compression.masking = false\ncompression.values = \"", values, "\""),
                {.momentum = 0.0});
    std::vector<double> given(2000, 0.0), sent(2000, 0.0);
    for (int64_t step = 0; step < 30; ++step) {
      const Philox noise(3, static_cast<uint64_t>(step), 0);
      for (size_t i = 0; i < given.size(); ++i) {
        rig.gradient()[i] = noise.uniform(i) - 0.5f;
        given[i] += static_cast<double>(rig.gradient()[i]);
      }
      const StepInfo info = info_of(step, 0.02);
      rig.decode(info, {rig.encode(info)});
      for (size_t i = 0; i < sent.size(); ++i) sent[i] += static_cast<double>(rig.gradient()[i]);
    }
    for (size_t i = 0; i < given.size(); ++i) {
      // f32 rounding of up to 30 additions of numbers below 16
      EXPECT_NEAR(sent[i] + static_cast<double>(rig.residual()[i]), given[i], 3e-5) << values;
    }
  }
}

TEST(Dgc, KeepsWhatHalfPrecisionCannotSay) {
  UnitRig rig = dgc_rig(layer_fields({3}), "compression.values = \"f16\"", {});
  rig.gradient()[0] = 1.0f;
  rig.gradient()[1] = 1e6f;  // beyond f16
  rig.gradient()[2] = 2.0f;
  const StepInfo info = info_of(0, 0.3);
  rig.decode(info, {rig.encode(info)});
  EXPECT_EQ(rig.gradient()[1], 65504.0f);
  EXPECT_EQ(rig.residual()[1], 1e6f - 65504.0f);
}

TEST(Dgc, SendsNothingAndKeepsItsStateIfTheGradientIsNotFinite) {
  UnitRig rig =
      dgc_rig(layer_fields({9000, 5}), "compression.indices = 'runs16'", {.momentum = 0.9});
  const Philox noise(4, 0, 0);
  const int64_t arena = rig.unit.gradient.numel();
  for (int64_t i = 0; i < arena; ++i) {
    rig.momentum()[i] = noise.uniform(static_cast<uint64_t>(i));
    rig.residual()[i] = 2.0f;
    rig.gradient()[i] = std::numeric_limits<float>::quiet_NaN();
  }
  const std::vector<float> u(rig.momentum(), rig.momentum() + arena);
  rig.unit.finite = false;
  const StepInfo info = info_of(5, 0.01);
  const PayloadBytes payload = rig.encode(info);
  EXPECT_EQ(payload.size(), 4u) << "of two fields, the first one's count";
  rig.decode(info, {payload});
  for (const Field& field : rig.fields) {
    for (int64_t i = 0; i < field.numel; ++i)
      ASSERT_EQ(rig.gradient()[field.slices[0].offset + i], 0.0f);
  }
  EXPECT_EQ(std::vector<float>(rig.momentum(), rig.momentum() + arena), u);
  EXPECT_EQ(std::count(rig.residual(), rig.residual() + arena, 2.0f), arena);
}

TEST(Dgc, TakesAShareOfTheOptimizersMomentumWhenItEngages) {
  for (const bool nesterov : {false, true}) {
    UnitRig rig =
        dgc_rig(layer_fields({5}), "", {.workers = 4, .momentum = 0.5, .nesterov = nesterov});
    rig.momentum()[2] = 8.0f;
    rig.compressor->engage(rig.test.context, rig.unit, info_of(3, 0.5, 4));
    EXPECT_EQ(rig.momentum()[2], nesterov ? 1.0f : 2.0f);
  }
}

/// After dense steps with the optimizer's momentum, a switch at ratio 1 without masking continues
/// the same trajectory.
TEST(Dgc, ContinuesTheDenseTrajectory) {
  for (const bool nesterov : {false, true}) {
    UnitRig rig = dgc_rig(layer_fields({1}), "compression.masking = false",
                          {.momentum = 0.9, .nesterov = nesterov});
    double m = 0.0;
    for (int64_t step = 0; step < 12; ++step) {
      const double g = std::sin(static_cast<double>(step));
      m = 0.9 * m + g;
      const double update = nesterov ? g + 0.9 * m : m;
      if (step < 5) {
        rig.momentum()[0] = static_cast<float>(m);
        continue;
      }
      const StepInfo info = info_of(step, 1.0);
      if (step == 5) rig.compressor->engage(rig.test.context, rig.unit, info);
      rig.gradient()[0] = static_cast<float>(g);
      rig.decode(info, {rig.encode(info)});
      EXPECT_NEAR(rig.gradient()[0], update, 2e-6) << step;  // f32 against f64
    }
  }
}

TEST(Dgc, TreatsSlicesOfABucketAsOneField) {
  const std::vector<int64_t> sizes = {3000, 1, 12'000, 77};
  UnitRig split = dgc_rig({joined_field(sizes)}, "", {.momentum = 0.9});
  UnitRig whole = dgc_rig({joined_field({15'078})}, "", {.momentum = 0.9});
  for (int64_t step = 0; step < 5; ++step) {
    const Philox noise(6, static_cast<uint64_t>(step), 0);
    int64_t position = 0;
    for (const Slice& slice : split.fields[0].slices) {
      for (int64_t i = 0; i < slice.numel; ++i, ++position) {
        const float g = noise.uniform(static_cast<uint64_t>(position)) - 0.5f;
        split.gradient()[slice.offset + i] = whole.gradient()[position] = g;
      }
    }
    const StepInfo info = info_of(step, 0.002);
    const PayloadBytes payload = split.encode(info);
    ASSERT_EQ(payload, whole.encode(info)) << step;
    split.decode(info, {payload});
    whole.decode(info, {payload});
    position = 0;
    for (const Slice& slice : split.fields[0].slices) {
      for (int64_t i = 0; i < slice.numel; ++i, ++position) {
        ASSERT_EQ(split.gradient()[slice.offset + i], whole.gradient()[position]);
        ASSERT_EQ(split.residual()[slice.offset + i], whole.residual()[position]);
        ASSERT_EQ(split.momentum()[slice.offset + i], whole.momentum()[position]);
      }
    }
  }
}

TEST(Dgc, OwnsMomentumAndDecay) {
  const Traits traits = make_method("dgc", "")->traits();
  EXPECT_EQ(traits.momentum, Home::compressor);
  EXPECT_EQ(traits.decay, Home::compressor);
  EXPECT_EQ(traits.result, UpdateRule::update);
  EXPECT_EQ(traits.clipping, Clipping::local_only);
  EXPECT_TRUE(traits.sparse && traits.dense_1d);
}

TEST(Dgc, RefusesWrongOptions) {
  EXPECT_EQ(error_of([] { make_method("dgc", "compression.values = \"f8\""); }),
            "test.toml:1: compression.values is 'f8', expected f32, f16, bf16 or natural");
  EXPECT_EQ(error_of([] { make_method("dgc", "[compression]\nratio = 2.0"); }),
            "test.toml:2: compression.ratio is 2, expected 0 < ratio <= 1");
  EXPECT_EQ(error_of([] { make_method("dgc", "[compression]\nratio = 0"); }),
            "test.toml:2: compression.ratio is 0, expected 0 < ratio <= 1");
}

}  // namespace
}  // namespace wisp
