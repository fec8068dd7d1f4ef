#include <gtest/gtest.h>

#include "core/train/optimizer_options.h"
#include "tests/support/error_of.h"
#include "tests/support/optimizer_rig.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

OptimizerOptions bound(const std::string& text) {
  Config config = Config::from_text("[optimizer]\nkind = \"lion\"\n" + text, "my.toml");
  return OptimizerOptions::bind(config);
}

/// Algorithm 2 of the paper, one number at a time.
TEST(Lion, FollowsTheScalarRule) {
  OptimizerRig rig;
  const auto lion =
      bound("beta1 = 0.8\nbeta2 = 0.95\nweight_decay = 0.1\n").recipe.make(rig.parameters);
  std::vector<double> m(8), w(8);
  rig.each([&](const Segment& segment, int64_t i, size_t at) { w[at] = rig.weight(segment, i); });
  for (int64_t number = 1; number <= 20; ++number) {
    rig.each([&](const Segment& segment, int64_t i, size_t at) {
      const double g = normal(Philox(1, static_cast<uint64_t>(number), 0), at);
      rig.gradient(segment, i) = g;
      const double c = 0.8 * m[at] + (1.0 - 0.8) * g;
      w[at] -= 0.01 * ((c > 0.0 ? 1.0 : -1.0) + (segment.decay ? 0.1 : 0.0) * w[at]);
      m[at] = 0.95 * m[at] + (1.0 - 0.95) * g;
    });
    lion->step(rig.context, 0.01, number, both(UpdateRule::gradient));
  }
  rig.each([&](const Segment& segment, int64_t i, size_t at) {
    EXPECT_DOUBLE_EQ(rig.weight(segment, i), w[at]);
    EXPECT_DOUBLE_EQ(rig.state("mean", segment, i), m[at]);
  });
}

TEST(Lion, TrainsByItsNameAndGoesOnAsIfItHadNotStopped) {
  const TempDir dir;
  const Overrides lion{"optimizer.kind=lion",     "optimizer.lr=0.003",    "workers=2",
                       "compression.method=topk", "compression.ratio=0.1", "ema.decay=0.9"};
  tiny_train(dir / "whole", lion);
  tiny_train(dir / "cut", lion + Overrides{"train.max_steps=7"});
  tiny_train(dir / "cut", lion, RunDirectory::Open::resume);
  EXPECT_EQ(checkpoint_content(dir / "cut", 16), checkpoint_content(dir / "whole", 16));
}

TEST(Lion, IsKnownToMethodsAndMessages) {
  EXPECT_EQ(error_of([] {
              Prepared(tiny_config({"optimizer.kind=lion", "compression.method=dgc"}));
            }),
            "command line: method dgc returns finished updates instead of gradients, which lion "
            "cannot use; use optimizer.kind = \"sgd\" or another method");
  EXPECT_EQ(error_of([] { bound("beta1 = 1.5\n"); }),
            "my.toml:3: optimizer.beta1 is 1.5, expected a number in [0, 1)");
  EXPECT_EQ(error_of([] { Prepared(tiny_config({"optimizer.kind=tiger"})); }),
            "command line: unknown optimizer.kind 'tiger'; known: adamw, lion, sgd");
  const Prepared run(tiny_config({"optimizer.kind=lion", "optimizer.eps=1"}));
  EXPECT_EQ(run.notices().front(),
            "keys of other optimizers have no effect with optimizer.kind lion: optimizer.eps "
            "(command line)");
}

}  // namespace
}  // namespace wisp
