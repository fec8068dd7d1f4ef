#include "apps/sweep/sweep_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace wisp {
namespace {

SweepResult result_of(const std::vector<std::optional<std::string>>& values, double accuracy) {
  SweepResult result;
  result.run.name = "run";
  result.run.values = values;
  result.version = "0.1.0 (abc)";
  result.summary.emplace().scores = {{"test_accuracy", accuracy}};
  result.summary->bytes_sent = 100.0;
  return result;
}

const std::vector<SweepAxis> kAxes = {{"compression.method", {"none", "topk"}},
                                      {"compression.ratio", {"0.1"}},
                                      {"optimizer.lr", {"0.1", "0.2"}},
                                      {"seed", {"1", "2"}}};

TEST(SweepTable, MarkdownHasMeanAndDeviationOverSeeds) {
  const std::vector<SweepResult> results = {result_of({"none", {}, {}, "1"}, 0.90),
                                            result_of({"none", {}, {}, "2"}, 0.92),
                                            result_of({"topk", "0.1", "0.2", "1"}, 0.5)};
  const std::string text = sweep_markdown(kAxes, results);
  EXPECT_EQ(text.find("| compression.method | optimizer.lr | n | test accuracy (%) |"), 0u);
  EXPECT_NE(text.find("| none | - | 2 | 91.00 ± 1.41 | 100 ± 0 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| topk | 0.2 | 1 | 50.00 | 100 |"), std::string::npos) << text;
}

TEST(SweepTable, MarkdownSaysWhatTheRunsWereComputedWith) {
  std::vector<SweepResult> results = {result_of({"none", {}, {}, "1"}, 0.90),
                                      result_of({"none", {}, {}, "2"}, 0.92),
                                      result_of({"topk", "0.1", "0.2", "1"}, 0.5)};
  results[0].summary->numerics = results[1].summary->numerics = "library, CPU A";
  const std::string text = sweep_markdown(kAxes, results);
  EXPECT_NE(text.find("\n2 runs: program 0.1.0 (abc), computed with: library, CPU A\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n1 run: program 0.1.0 (abc), computed with: not recorded\n"),
            std::string::npos)
      << text;
}

TEST(SweepTable, KeepsAValueInItsCellAndARunInItsRow) {
  std::vector<SweepResult> results = {result_of({"a|b\nc\x1b[2J", {}, "0.1", "1"}, 0.5)};
  results[0].summary->numerics = "x\ry\n| z |";
  const std::string text = sweep_markdown(kAxes, results);
  EXPECT_NE(text.find("\n| a\\|b\\nc\\x1b[2J | 0.1 | 1 |"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("computed with: x\\ry\\n| z |\n")) << text;
  EXPECT_NE(sweep_csv(kAxes, results).find(",\"x\ry\n| z |\","), std::string::npos);
}

TEST(SweepTable, OfOneWorkerHasNoReduction) {
  SweepResult alone = result_of({"none", {}, {}, "1"}, 0.90);
  alone.summary->bytes_sent = 0.0;
  alone.summary->reduction_sent = 1.0;
  const std::string text = sweep_markdown(kAxes, std::vector<SweepResult>{alone});
  EXPECT_NE(text.find("| none | - | 1 | 90.00 | 0 | - |"), std::string::npos) << text;
}

TEST(SweepTable, CsvHasARowPerRunWithEveryNumber) {
  SweepResult odd = result_of({"a,\"b\"", {}, "0.1", "1"}, 0.5);
  odd.summary->steps = 7;
  odd.summary->numerics = "library, CPU";
  const std::string text = sweep_csv(kAxes, std::vector<SweepResult>{odd});
  EXPECT_EQ(text.find("run,compression.method,compression.ratio,optimizer.lr,seed,version,"
                      "numerics,test_accuracy,images_per_s,steps,"),
            0u);
  EXPECT_NE(text.find("\nrun,\"a,\"\"b\"\"\",,0.1,1,0.1.0 (abc),\"library, CPU\",0.5,0.0,7,"),
            std::string::npos)
      << text;
}

TEST(SweepTable, MarksRunsThatDiverged) {
  std::vector<SweepResult> results = {
      result_of({"none", {}, "0.1", "1"}, 0.90), result_of({"none", {}, "0.1", "2"}, 0.10),
      result_of({"none", {}, "0.1", "3"}, 0.92), result_of({"none", {}, "0.2", "1"}, 0.95),
      result_of({"topk", {}, "0.2", "1"}, 0.0),  result_of({"topk", {}, "0.2", "2"}, 0.0)};
  results[1].diverged = "the loss of the last 3 steps was not finite";
  results[3].diverged = results[3].summary->diverged = "the loss of the test set is not finite";
  results[3].summary->scores[0].second = std::nan("");
  for (SweepResult* ended : {&results[4], &results[5]}) {
    ended->summary.reset();
    ended->diverged = "step 7: the loss was not finite in 5 steps in a row";
  }
  const std::string text = sweep_markdown(kAxes, results);
  EXPECT_NE(text.find("| none | 0.1 | 3 | 91.00 ± 1.41 (1 of 3 diverged) | 100 ± 0 |"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| none | 0.2 | 1 | diverged | - |"), std::string::npos) << text;
  EXPECT_NE(text.find("| topk | 0.2 | 2 | diverged (2 of 2 diverged) | - |"), std::string::npos)
      << text;
  const std::string csv = sweep_csv(kAxes, results);
  EXPECT_NE(csv.find(",diverged\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",the loss of the last 3 steps was not finite\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("none,,0.2,1,0.1.0 (abc),not recorded,,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("topk,,0.2,1,0.1.0 (abc),,,"), std::string::npos) << csv;
}

TEST(SweepTable, ShowsValidationIfSomeRunHasIt) {
  std::vector<SweepResult> results = {result_of({"none", {}, {}, "1"}, 0.90),
                                      result_of({"topk", "0.1", "0.2", "1"}, 0.5)};
  for (const std::string& text : {sweep_csv(kAxes, results), sweep_markdown(kAxes, results)})
    EXPECT_EQ(text.find("validation"), std::string::npos) << text;
  results[1].summary->scores.emplace_back("validation_accuracy", 0.75);
  results[1].facts.has_validation = true;
  const std::string csv = sweep_csv(kAxes, results);
  EXPECT_NE(csv.find(",version,numerics,test_accuracy,validation_accuracy,images_per_s,"),
            std::string::npos);
  EXPECT_NE(csv.find(",0.1.0 (abc),not recorded,0.9,,0.0,"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",0.1.0 (abc),not recorded,0.5,0.75,0.0,"), std::string::npos) << csv;
  const std::string markdown = sweep_markdown(kAxes, results);
  EXPECT_NE(markdown.find("| n | test accuracy (%) | validation accuracy (%) | sent"),
            std::string::npos);
  EXPECT_NE(markdown.find("| none | - | 1 | 90.00 | - | 100 |"), std::string::npos) << markdown;
  EXPECT_NE(markdown.find("| topk | 0.2 | 1 | 50.00 | 75.00 | 100 |"), std::string::npos)
      << markdown;
}

}  // namespace
}  // namespace wisp
