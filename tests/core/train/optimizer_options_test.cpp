#include "core/train/optimizer_options.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/optimizer_rig.h"

namespace wisp {
namespace {

OptimizerOptions bound(const std::string& text) {
  Config config = Config::from_text("[optimizer]\n" + text, "my.toml");
  return OptimizerOptions::bind(config);
}

TEST(OptimizerOptions, MakeTheKindTheyName) {
  const auto arenas = [](const std::string& text) {
    OptimizerRig rig;
    const auto optimizer = bound(text).recipe.make(rig.parameters);
    return rig.parameters.state_names();
  };
  EXPECT_EQ(arenas(""), std::vector<std::string>{"momentum"});
  EXPECT_EQ(arenas("kind = \"adamw\"\n"), (std::vector<std::string>{"momentum", "second_moment"}));
}

TEST(OptimizerOptions, SayThatKeysOfAnotherKindHaveNoEffect) {
  Config config = Config::from_text("optimizer.beta1 = 0.8\noptimizer.lr = 0.5\n", "my.toml");
  const OptimizerOptions options = OptimizerOptions::bind(config);
  EXPECT_EQ(options.notices,
            std::vector<std::string>{"keys of other optimizers have no effect with optimizer.kind "
                                     "sgd: optimizer.beta1 (my.toml:1)"});
  config.finish();
  EXPECT_EQ(config.resolved().find("beta1"), std::string::npos);
  EXPECT_TRUE(bound("momentum = 0.5\n").notices.empty());
}

TEST(OptimizerOptions, NameTheKnownKindsAndThePlace) {
  EXPECT_EQ(error_of([] { bound("kind = \"adam\"\n"); }),
            "my.toml:2: unknown optimizer.kind 'adam'; known: adamw, sgd");
  EXPECT_EQ(error_of([] { bound("kind = \"adamw\"\nbeta2 = 1.0\n"); }),
            "my.toml:3: optimizer.beta2 is 1, expected 0 <= beta2 < 1");
  EXPECT_EQ(error_of([] { bound("nesterov = true\ndampening = 0.5\n"); }),
            "my.toml:2: optimizer.nesterov needs a dampening of 0, not 0.5");
}

}  // namespace
}  // namespace wisp
