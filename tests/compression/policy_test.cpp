#include "compression/policy.h"

#include <gtest/gtest.h>

#include "compression/compressor.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

using Rules = std::vector<int>;
constexpr int kNone = kNoRule, kDense = kDenseRule;

Segment segment(const std::string& name, Shape shape, const std::string& kind) {
  return {.name = name, .shape = shape, .numel = shape.numel(), .kind = kind};
}

const std::vector<Segment> kSegments = {
    segment("stem.conv.weight", {16, 3, 3, 3}, "conv"), segment("stem.bn.gamma", {16}, "norm"),
    segment("stage1.block0.conv1.weight", {16, 3, 3, 16}, "conv"),
    segment("fc.weight", {10, 64}, "linear"), segment("fc.bias", {10}, "bias")};

Rules choose(const std::string& toml, bool dense_1d = true) {
  Config config = Config::from_text(toml, "test.toml");
  const std::vector<PolicyRule> rules = read_policy(config);
  config.finish();
  return choose_rules(kSegments, rules, dense_1d);
}

TEST(Policy, LeavesVectorsDenseByDefault) {
  EXPECT_EQ(choose(""), (Rules{kNone, kDense, kNone, kNone, kDense}));
  EXPECT_EQ(choose("", false), Rules(5, kNone));
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
            (Rules{2, 2, 1, 0, kDense}));
}

TEST(Policy, ChoosesByTheKindOfTheLayer) {
  EXPECT_EQ(choose(R"(
      [[compression.policy]]
      kind = "norm"
      method = "fp16"
      [[compression.policy]]
      kind = "con?"
      min_numel = 500
      method = "topk"
      )"),
            (Rules{kNone, 0, 1, kNone, kDense}));
}

TEST(Policy, ReadsOptionsWithTheirPlaces) {
  Config config = Config::from_text(R"(
[[compression.policy]]
name = "fc.*"
method = "topk"
options = { values = "f16", sample.rate = 3 }
)",
                                    "test.toml");
  const std::vector<PolicyRule> rules = read_policy(config);
  config.finish();
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0].where, "test.toml:4");
  Config own = Config::from_text("compression.values = \"f32\"\nseed = 3", "run.toml")
                   .with("compression.", rules[0].options);
  std::string values = "f32";
  int64_t rate = 0, seed = 0;
  own.bind("compression.values", values, "");
  own.bind("compression.sample.rate", rate, "");
  own.bind("seed", seed, "");
  EXPECT_EQ(values, "f16");
  EXPECT_EQ(rate, 3);
  EXPECT_EQ(seed, 3);
  EXPECT_EQ(own.where("compression.values"), "test.toml:5");
}

TEST(Policy, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(error_of([] {
              choose("[[compression.policy]]\nmethod = \"topk\"\noptions = 3");
            }).find("test.toml:3: compression.policy.options is"),
            std::string::npos);
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
