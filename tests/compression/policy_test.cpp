#include "compression/policy.h"

#include <gtest/gtest.h>

#include "compression/compressor.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

using Methods = std::vector<std::string>;

Segment segment(const std::string& name, Shape shape) {
  return {.name = name, .shape = shape, .numel = shape.numel()};
}

const std::vector<Segment> kSegments = {segment("stem.conv.weight", {16, 3, 3, 3}),
                                        segment("stem.bn.gamma", {16}),
                                        segment("stage1.block0.conv1.weight", {16, 3, 3, 16}),
                                        segment("fc.weight", {10, 64}), segment("fc.bias", {10})};

Methods choose(const std::string& toml, bool dense_1d = true) {
  Config config = Config::from_text(toml, "test.toml");
  const std::vector<PolicyRule> rules = read_policy(config);
  config.finish();
  return choose_methods(kSegments, rules, "dgc", dense_1d);
}

TEST(Policy, LeavesVectorsDenseByDefault) {
  EXPECT_EQ(choose(""), (Methods{"dgc", "none", "dgc", "dgc", "none"}));
  EXPECT_EQ(choose("", false), (Methods{"dgc", "dgc", "dgc", "dgc", "dgc"}));
}

TEST(Policy, TakesTheFirstRuleThatFits) {
  EXPECT_EQ(choose(R"(
      [[compression.policy]]
      name = "fc.*"
      rank = 2
      method = "fp16"
      [[compression.policy]]
      name = "stage?.*.weight"
      method = "topk"
      [[compression.policy]]
      max_numel = 500
      min_numel = 16
      method = "bf16"
      )"),
            (Methods{"bf16", "bf16", "topk", "fp16", "none"}));
}

TEST(Policy, RefusesWhatItDoesNotKnow) {
  const std::string unknown = error_of([] { choose("[[compression.policy]]\nmethod = \"dcg\""); });
  EXPECT_EQ(unknown.find("test.toml:2: unknown compression method 'dcg'; known: "), 0u) << unknown;
  EXPECT_NE(unknown.find(", dgc, "), std::string::npos) << unknown;
  EXPECT_NE(error_of([] {
              choose("[[compression.policy]]\nnmae = \"*\"\nmethod = \"dgc\"");
            }).find("test.toml:2: unknown key"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              choose("[[compression.policy]]\nname = \"*\"");
            }).find("unknown compression method ''"),
            std::string::npos);
}

TEST(Policy, NoneIsAMethodThatLeavesGradientsDense) {
  Config config;
  const auto& none = CompressorRegistry::instance().find("compression method", "none");
  EXPECT_EQ(none.make(config, {}), nullptr);
}

}  // namespace
}  // namespace wisp
