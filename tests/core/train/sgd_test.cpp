#include "core/train/sgd.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/optimizer_rig.h"

namespace wisp {
namespace {

/// Compares Sgd with the rule of PyTorch's SGD, one number at a time.
void follows_the_scalar_rule(SgdOptions options) {
  OptimizerRig rig;
  Sgd sgd(rig.parameters, options);
  std::vector<double> m(8), w(8);
  rig.each([&](const Segment& segment, int64_t i, size_t at) { w[at] = rig.weight(segment, i); });
  for (int64_t number = 1; number <= 20; ++number) {
    const double lr = 0.1 / static_cast<double>(number);
    rig.each([&](const Segment& segment, int64_t i, size_t at) {
      const double g = normal(Philox(1, static_cast<uint64_t>(number), 0), at);
      rig.gradient(segment, i) = g;
      const double d = g + (segment.decay ? options.weight_decay : 0.0) * w[at];
      m[at] = number == 1 ? d : options.momentum * m[at] + (1.0 - options.dampening) * d;
      w[at] -= lr * (options.nesterov ? d + options.momentum * m[at] : m[at]);
    });
    sgd.step(rig.context, lr, number, both(UpdateRule::gradient));
  }
  rig.each([&](const Segment& segment, int64_t i, size_t at) {
    EXPECT_DOUBLE_EQ(rig.weight(segment, i), w[at]);
    EXPECT_DOUBLE_EQ(rig.state("momentum", segment, i), m[at]);
  });
}

TEST(Sgd, FollowsTheScalarRuleWithMomentumAndDecay) {
  follows_the_scalar_rule({.momentum = 0.9, .weight_decay = 1e-2});
}

TEST(Sgd, FollowsTheScalarRuleWithNesterov) {
  follows_the_scalar_rule({.momentum = 0.8, .nesterov = true, .weight_decay = 1e-2});
}

TEST(Sgd, FollowsTheScalarRuleWithDampening) {
  follows_the_scalar_rule({.momentum = 0.9, .dampening = 0.3, .weight_decay = 1e-2});
}

TEST(Sgd, DampensFromTheSecondUpdateOn) {
  OptimizerRig rig;
  Sgd sgd(rig.parameters, {.momentum = 0.5, .dampening = 0.25});
  const Segment& segment = rig.undecayed();
  rig.weight(segment, 0) = 10.0;
  rig.gradient(segment, 0) = 4.0;
  sgd.step(rig.context, 1.0, 1, both(UpdateRule::gradient));
  EXPECT_EQ(rig.weight(segment, 0), 10.0 - 4.0);
  sgd.step(rig.context, 1.0, 2, both(UpdateRule::gradient));
  EXPECT_EQ(rig.weight(segment, 0), 10.0 - 4.0 - (0.5 * 4.0 + 0.75 * 4.0));
}

TEST(Sgd, SubtractsAnUpdateAsItIsAndKeepsTheMomentum) {
  OptimizerRig rig;
  Sgd sgd(rig.parameters, {.momentum = 0.9, .weight_decay = 0.1});
  const Segment& decayed = rig.decayed();
  rig.gradient(decayed, 2) = 4.0;
  const double before = rig.weight(decayed, 2);
  sgd.step(rig.context, 0.5, 1, both(UpdateRule::update));
  EXPECT_EQ(rig.weight(decayed, 2), before - 2.0);
  EXPECT_EQ(rig.state("momentum", decayed, 2), 0.0);
}

TEST(Sgd, TakesAMomentumInPlaceOfItsOwn) {
  OptimizerRig rig;
  Sgd sgd(rig.parameters, {.momentum = 0.9, .weight_decay = 0.1});
  const Segment& decayed = rig.decayed();
  rig.gradient(decayed, 0) = 4.0;
  const double before = rig.weight(decayed, 0);
  sgd.step(rig.context, 0.5, 1, both(UpdateRule::momentum));
  EXPECT_DOUBLE_EQ(rig.weight(decayed, 0), before - 0.5 * (4.0 + 0.1 * before));
  EXPECT_EQ(rig.state("momentum", decayed, 0), 4.0);
}

TEST(Sgd, HasNoMemoryForAMomentumOf0) {
  OptimizerRig rig;
  Sgd sgd(rig.parameters, {.momentum = 0.0, .weight_decay = 0.1});
  const Segment& decayed = rig.decayed();
  rig.gradient(decayed, 2) = 4.0;
  const double before = rig.weight(decayed, 2);
  sgd.step(rig.context, 0.5, 1, both(UpdateRule::gradient));
  EXPECT_DOUBLE_EQ(rig.weight(decayed, 2), before - 0.5 * (4.0 + 0.1 * before));
  EXPECT_TRUE(sgd.arenas().empty());
  EXPECT_TRUE(rig.parameters.state_names().empty());
}

TEST(Sgd, RefusesOptionsOutOfRange) {
  const auto refusal = [](SgdOptions options) {
    return error_of([&] {
      OptimizerRig rig;
      Sgd(rig.parameters, options);
    });
  };
  EXPECT_EQ(refusal({.momentum = 1.0}), "sgd: momentum is 1, expected 0 <= momentum < 1");
  EXPECT_EQ(refusal({.momentum = 0.0, .nesterov = true}), "sgd: nesterov needs a momentum above 0");
  EXPECT_EQ(refusal({.weight_decay = -1.0}), "sgd: weight_decay is -1, expected 0 or more");
  EXPECT_EQ(refusal({.dampening = 1.0}), "sgd: dampening is 1, expected 0 <= dampening < 1");
  EXPECT_EQ(refusal({.momentum = 0.0, .dampening = 0.5}),
            "sgd: dampening is 0.5, which needs a momentum above 0 to act on");
  EXPECT_EQ(refusal({.dampening = 0.5, .nesterov = true}),
            "sgd: nesterov needs a dampening of 0, not 0.5");
}

TEST(SgdOptions, NamesTheKeyAndItsPlace) {
  Config config = Config::from_text("[optimizer]\nmomentum = 2.0\n", "my.toml");
  EXPECT_EQ(error_of([&] { SgdOptions::bind(config); }),
            "my.toml:2: optimizer.momentum is 2, expected 0 <= momentum < 1");
}

}  // namespace
}  // namespace wisp
