#include "apps/lab/bench_step.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

/// The loss of each step in the log of `train`.
std::vector<double> logged_losses(const std::string& run) {
  std::vector<double> losses;
  std::ifstream file(run + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row.at("type") == "step") losses.push_back(row.at("loss"));
  }
  return losses;
}

class BenchStep : public testing::TestWithParam<int> {};

TEST_P(BenchStep, LossesAreThoseOfTrainOnThatBatch) {
  const TempDir dir;
  const Overrides overrides = {"workers=" + std::to_string(GetParam()), "compression.method=dgc",
                               "compression.ratio=0.1"};
  const StepTiming timing = bench_step(tiny_config(overrides), "tiny", 0.0, 1);
  tiny_train(dir / "run", overrides + Overrides{"train.one_batch=true", "train.max_steps=3"});
  const std::vector<double> losses = logged_losses(dir / "run");
  ASSERT_EQ(losses.size(), 3u);
  ASSERT_GE(timing.losses.size(), 3u);
  EXPECT_EQ(std::vector<double>(timing.losses.begin(), timing.losses.begin() + 3), losses);
  EXPECT_LT(losses[2], losses[0]);
}

INSTANTIATE_TEST_SUITE_P(Workers, BenchStep, testing::Values(1, 4));

TEST(BenchStepRow, HasTheAgreedKeys) {
  const StepTiming timing = bench_step(tiny_config(), "tiny", 0.0, 2);
  const auto row = nlohmann::ordered_json::parse(timing.json());
  std::vector<std::string> keys;
  for (const auto& [key, value] : row.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"case", "impl", "batch", "rate", "unit", "ms",
                                            "peak_mb", "loss0", "loss1"}));
  EXPECT_EQ(row.at("case"), "tiny");
  EXPECT_EQ(row.at("batch"), 32);
  EXPECT_GT(row.at("rate"), 0.0);
  EXPECT_EQ(row.at("loss0"), timing.losses.front());
}

}  // namespace
}  // namespace wisp
