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

TEST(OptimizerOptions, GiveOneDecayToBothKinds) {
  const OptimizerOptions options = bound("weight_decay = 0.25\n");
  EXPECT_EQ(options.sgd.weight_decay, 0.25);
  EXPECT_EQ(options.adamw.weight_decay, 0.25);
}

TEST(OptimizerOptions, MakeTheKindTheyName) {
  const auto arenas = [](const std::string& text) {
    OptimizerRig rig;
    const auto optimizer = make_optimizer(rig.parameters, bound(text));
    return rig.parameters.state_names();
  };
  EXPECT_EQ(arenas(""), std::vector<std::string>{"momentum"});
  EXPECT_EQ(arenas("kind = \"adamw\"\n"), (std::vector<std::string>{"momentum", "second_moment"}));
}

TEST(OptimizerOptions, NameTheKnownKindsAndThePlace) {
  EXPECT_EQ(error_of([] { bound("kind = \"adam\"\n"); }),
            "my.toml:2: unknown optimizer.kind 'adam'; known: adamw, sgd");
  EXPECT_EQ(error_of([] { bound("beta2 = 1.0\n"); }),
            "my.toml:2: optimizer.beta2 is 1, expected 0 <= beta2 < 1");
  EXPECT_EQ(error_of([] { bound("nesterov = true\ndampening = 0.5\n"); }),
            "my.toml:2: optimizer.nesterov needs a dampening of 0, not 0.5");
}

}  // namespace
}  // namespace wisp
