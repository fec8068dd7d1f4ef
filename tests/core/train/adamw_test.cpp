#include "core/train/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/optimizer_rig.h"

namespace wisp {
namespace {

TEST(AdamW, MakesTheFirstStepOfTheFormula) {
  OptimizerRig rig;
  AdamW adamw(rig.parameters, {.weight_decay = 0.5});
  rig.weight(rig.decayed(), 0) = rig.weight(rig.undecayed(), 0) = 2.0;
  rig.gradient(rig.decayed(), 0) = rig.gradient(rig.undecayed(), 0) = -3.0;
  adamw.step(rig.context, 0.1, 1, both(UpdateRule::gradient));
  // the bias corrections give m = -3 and v = 9, so the step is lr · -3 / (3 + eps)
  const double step = 0.1 * -3.0 / (3.0 + 1e-8);
  EXPECT_DOUBLE_EQ(rig.weight(rig.undecayed(), 0), 2.0 - step);
  EXPECT_DOUBLE_EQ(rig.weight(rig.decayed(), 0), 2.0 - 0.1 * 0.5 * 2.0 - step);
  EXPECT_DOUBLE_EQ(rig.state("momentum", rig.decayed(), 0), -0.3);
  EXPECT_NEAR(rig.state("second_moment", rig.decayed(), 0), 0.009, 1e-16);  // 1 - 0.999 in f64
}

TEST(AdamW, FollowsTheScalarRule) {
  const AdamWOptions o{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 1e-2};
  OptimizerRig rig;
  AdamW adamw(rig.parameters, o);
  std::vector<double> w(8), m(8), v(8);
  rig.each([&](const Segment& segment, int64_t i, size_t at) { w[at] = rig.weight(segment, i); });
  for (int t = 1; t <= 20; ++t) {
    const double lr = 0.1 / t;
    rig.each([&](const Segment& segment, int64_t i, size_t at) {
      const double g = normal(Philox(1, static_cast<uint64_t>(t), 0), at);
      rig.gradient(segment, i) = g;
      m[at] = o.beta1 * m[at] + (1.0 - o.beta1) * g;
      v[at] = o.beta2 * v[at] + (1.0 - o.beta2) * g * g;
      const double m_hat = m[at] / (1.0 - std::pow(o.beta1, t));
      const double v_hat = v[at] / (1.0 - std::pow(o.beta2, t));
      w[at] -= lr * (segment.decay ? o.weight_decay : 0.0) * w[at];
      w[at] -= lr * m_hat / (std::sqrt(v_hat) + o.eps);
    });
    adamw.step(rig.context, lr, t, both(UpdateRule::gradient));
  }
  rig.each([&](const Segment& segment, int64_t i, size_t at) {
    EXPECT_NEAR(rig.weight(segment, i), w[at], 1e-14);  // divides in another order
    EXPECT_DOUBLE_EQ(rig.state("momentum", segment, i), m[at]);
    EXPECT_DOUBLE_EQ(rig.state("second_moment", segment, i), v[at]);
  });
}

TEST(AdamW, TakesAMomentumInPlaceOfItsOwnAndFreezesTheSecondMoment) {
  const AdamWOptions o{.beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.5};
  OptimizerRig rig;
  AdamW adamw(rig.parameters, o);
  const Segment& decayed = rig.decayed();
  for (int t = 1; t <= 3; ++t) {
    rig.gradient(decayed, 1) = 3.0;
    adamw.step(rig.context, 0.1, t, both(UpdateRule::gradient));
  }
  const double second = rig.state("second_moment", decayed, 1);
  rig.weight(decayed, 1) = 2.0;
  rig.gradient(decayed, 1) = 4.0;
  for (const int t : {4, 20}) {
    const double before = rig.weight(decayed, 1);
    adamw.step(rig.context, 0.1, t, both(UpdateRule::momentum));
    const double first = 4.0 / (1.0 - std::pow(o.beta1, t));
    const double root = std::sqrt(second / (1.0 - std::pow(o.beta2, 3)));  // as of its last update
    EXPECT_NEAR(rig.weight(decayed, 1), before - 0.1 * 0.5 * before - 0.1 * first / (root + 1e-8),
                1e-14);
  }
  EXPECT_EQ(rig.state("momentum", decayed, 1), 4.0);
  EXPECT_EQ(rig.state("second_moment", decayed, 1), second);
}

TEST(AdamW, KeepsTheCorrectionOfEachSecondMoment) {
  OptimizerRig rig, same;
  AdamW adamw(rig.parameters, {}), other(same.parameters, {});
  const auto fill = [](OptimizerRig& of) {
    of.each([&](const Segment& segment, int64_t i, size_t at) {
      of.gradient(segment, i) = 1.0 + static_cast<double>(at);
    });
  };
  const std::vector<UpdateRule> one_frozen = {UpdateRule::momentum, UpdateRule::gradient};
  for (int64_t t = 1; t <= 6; ++t) {
    const std::vector<UpdateRule> rules = t <= 2   ? both(UpdateRule::gradient)
                                          : t <= 4 ? one_frozen
                                                   : both(UpdateRule::momentum);
    fill(rig);
    adamw.step(rig.context, 0.1, t, rules);
  }
  const Tensor counter = adamw.counters()[0].tensor;
  EXPECT_EQ(counter.data<int64_t>()[0], 2);
  EXPECT_EQ(counter.data<int64_t>()[1], 4);
  // a run resumed from a checkpoint makes the same step
  for (const char* name : {"momentum", "second_moment"}) {
    rig.each([&](const Segment& segment, int64_t i, size_t) {
      same.state(name, segment, i) = rig.state(name, segment, i);
      same.weight(segment, i) = rig.weight(segment, i);
    });
  }
  std::copy_n(counter.data<int64_t>(), 2, other.counters()[0].tensor.data<int64_t>());
  for (OptimizerRig* of : {&rig, &same}) fill(*of);
  adamw.step(rig.context, 0.1, 7, both(UpdateRule::momentum));
  other.step(same.context, 0.1, 7, both(UpdateRule::momentum));
  rig.each([&](const Segment& segment, int64_t i, size_t) {
    EXPECT_EQ(rig.weight(segment, i), same.weight(segment, i));
  });
}

/// A second moment that was frozen and then goes on is corrected by the number of its own updates.
TEST(AdamW, CountsTheUpdatesOfASecondMomentThatStoodStill) {
  const AdamWOptions o{.beta1 = 0.0, .beta2 = 0.9, .eps = 1e-12};
  OptimizerRig rig;
  AdamW adamw(rig.parameters, o);
  const Segment& segment = rig.undecayed();
  double& weight = rig.weight(segment, 0);
  const auto step = [&](int64_t number, UpdateRule rule) {
    rig.gradient(segment, 0) = 3.0;
    adamw.step(rig.context, 1.0, number, both(rule));
  };
  for (int64_t t = 1; t <= 2; ++t) step(t, UpdateRule::gradient);
  for (int64_t t = 3; t <= 50; ++t) step(t, UpdateRule::momentum);
  const double before = weight;
  step(51, UpdateRule::gradient);
  // m is the gradient; v, corrected for three updates, is its square
  EXPECT_NEAR(before - weight, 1.0, 1e-9);
}

TEST(AdamW, StaysFiniteIfAMomentumComesBeforeTheFirstGradient) {
  OptimizerRig rig;
  AdamW adamw(rig.parameters, {.eps = 0.5});
  rig.weight(rig.decayed(), 1) = 2.0;
  rig.gradient(rig.decayed(), 1) = 4.0;
  adamw.step(rig.context, 0.1, 1, both(UpdateRule::momentum));
  EXPECT_NEAR(rig.weight(rig.decayed(), 1), 2.0 - 0.1 * 4.0 / 0.1 / 0.5, 1e-12);
}

TEST(AdamW, SubtractsAnUpdateAsItIsAndKeepsTheMoments) {
  OptimizerRig rig;
  AdamW adamw(rig.parameters, {.weight_decay = 0.5});
  const Segment& decayed = rig.decayed();
  rig.gradient(decayed, 2) = 4.0;
  rig.state("momentum", decayed, 2) = 7.0;
  rig.state("second_moment", decayed, 2) = 9.0;
  const double before = rig.weight(decayed, 2);
  adamw.step(rig.context, 0.5, 1, both(UpdateRule::update));
  EXPECT_EQ(rig.weight(decayed, 2), before - 2.0);
  EXPECT_EQ(rig.state("momentum", decayed, 2), 7.0);
  EXPECT_EQ(rig.state("second_moment", decayed, 2), 9.0);
}

TEST(AdamW, LeavesWeightsWithoutGradientFinite) {
  OptimizerRig rig;
  AdamW adamw(rig.parameters, {});
  const double before = rig.weight(rig.decayed(), 0);
  adamw.step(rig.context, 0.1, 1, both(UpdateRule::gradient));
  EXPECT_EQ(rig.weight(rig.decayed(), 0), before);
}

TEST(AdamW, RefusesOptionsOutOfRange) {
  const auto refusal = [](AdamWOptions options) {
    return error_of([&] {
      OptimizerRig rig;
      AdamW(rig.parameters, options);
    });
  };
  EXPECT_EQ(refusal({.beta1 = 1.0}), "adamw: beta1 is 1, expected 0 <= beta1 < 1");
  EXPECT_EQ(refusal({.beta2 = -0.5}), "adamw: beta2 is -0.5, expected 0 <= beta2 < 1");
  EXPECT_EQ(refusal({.eps = 0.0}), "adamw: eps is 0, expected more than 0");
  EXPECT_EQ(refusal({.weight_decay = -1.0}), "adamw: weight_decay is -1, expected 0 or more");
}

}  // namespace
}  // namespace wisp
