#include "apps/report/run_diff.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/io/visible_text.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

RunRecord run_of(const std::vector<std::pair<int64_t, double>>& losses) {
  RunRecord run;
  run.name = "run";
  run.version = "1.0 (abc)";
  run.config = {{"seed", "1"}};
  for (const auto& [step, loss] : losses) {
    StepRow row;
    row.step = step;
    row.loss = loss;
    run.metrics.steps.push_back(row);
  }
  return run;
}

TEST(RunDiff, OfTheSameRunTwiceIsEqual) {
  const TempDir dir;
  for (const char* name : {"a", "b"}) tiny_train(dir / name, {"workers=2", "train.epochs=1"});
  const RunRecord a = RunRecord::read(dir / "a"), b = RunRecord::read(dir / "b");
  EXPECT_TRUE(compare_runs(a, b).equal());
  EXPECT_EQ(diff_text(a, b).find("the configurations are equal\nlosses, metrics and bytes are "
                                 "equal in all 4 steps recorded by both\n"),
            0u);
}

TEST(RunDiff, FindsTheStepWhereAnotherSeedTakesAnotherWay) {
  const TempDir dir;
  tiny_train(dir / "a", {"train.epochs=1"});
  tiny_train(dir / "b", {"train.epochs=1", "seed=2"});
  const RunRecord a = RunRecord::read(dir / "a"), b = RunRecord::read(dir / "b");
  const RunDiff diff = compare_runs(a, b);
  EXPECT_FALSE(diff.equal());
  ASSERT_EQ(diff.config.size(), 1u);
  EXPECT_EQ(diff.config[0].key, "seed");
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->step, 1);
  EXPECT_EQ(diff.first->what, "loss");
}

TEST(RunDiff, ComparesTheStepsThatBothRecorded) {
  const RunRecord a = run_of({{1, 2.0}, {2, 1.5}, {3, 1.25}, {4, 1.0}});
  const RunDiff diff = compare_runs(a, run_of({{2, 1.5}, {4, 1.0 + 1e-15}}));
  EXPECT_EQ(diff.compared, 2);
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->step, 4);
  const RunDiff shorter = compare_runs(a, run_of({{1, 2.0}, {2, 1.5}}));
  EXPECT_FALSE(shorter.first);
  EXPECT_FALSE(shorter.equal()) << "one goes on";
  EXPECT_EQ(shorter.last_a, 4);
  EXPECT_EQ(shorter.last_b, 2);
}

TEST(RunDiff, TakesALossThatIsNoNumberForEqualToItself) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(compare_runs(run_of({{1, nan}}), run_of({{1, nan}})).equal());
  EXPECT_FALSE(compare_runs(run_of({{1, nan}}), run_of({{1, 2.0}})).equal());
}

TEST(RunDiff, ShowsValidationIfOneRunHasIt) {
  RunRecord a = run_of({{1, 2.0}}), b = a;
  a.summary.emplace().scores = {{"test_accuracy", 0.5}};
  EXPECT_EQ(diff_text(a, b).find("validation"), std::string::npos);
  a.config.emplace_back("data.validation", "5000");
  a.facts.has_validation = true;
  a.summary->scores.emplace_back("validation_accuracy", 0.75);
  const std::string text = diff_text(a, b);
  EXPECT_NE(text.find("data.validation: 5000 and -\n"), std::string::npos) << text;
  EXPECT_NE(text.find("         test  validation "), std::string::npos) << text;
  EXPECT_NE(text.find("run  accuracy  accuracy  images/s "), std::string::npos) << text;
  EXPECT_NE(text.find("run   50.00 %   75.00 % "), std::string::npos) << text;
}

TEST(RunDiff, SeesBytesAndAnotherProgram) {
  const RunRecord a = run_of({{1, 2.0}});
  RunRecord b = a;
  b.metrics.steps[0].bytes_sent = 8;
  EXPECT_EQ(compare_runs(a, b).first->what, "bytes_sent");
  b = a;
  b.version = "1.0 (def)";
  EXPECT_FALSE(compare_runs(a, b).equal());
  EXPECT_NE(diff_text(a, b).find("program: 1.0 (abc) and 1.0 (def)\n"), std::string::npos);
}

TEST(RunDiff, NamesDoNotReachTheTerminalRaw) {
  RunRecord a = run_of({{1, 2.0}, {2, 2.0}}), b = run_of({{1, 3.0}});
  const std::string bad = "x\x1b[2J\n\u009b\xff";
  a.name = b.name = bad;
  a.version = bad;
  a.config = {{bad, bad}};
  a.summary.emplace().numerics = bad;
  a.facts.facts.work = bad;
  a.facts.metrics = {{.name = bad}};
  const std::string text = diff_text(a, b);
  EXPECT_EQ(visible_lines(text), text);
  EXPECT_NE(text.find("x\\x1b[2J\\n\\u009b\\xff: x\\x1b[2J\\n\\u009b\\xff and -\n"),
            std::string::npos)
      << text;
}

TEST(RunDiff, SaysWhatTheRunsWereComputedWithIfItDiffers) {
  RunRecord a = run_of({{1, 2.0}}), b = a;
  a.summary.emplace().numerics = b.summary.emplace().numerics = "library, CPU A";
  EXPECT_EQ(diff_text(a, b).find("computed with"), std::string::npos);
  b.summary->numerics = "library, CPU B";
  EXPECT_NE(diff_text(a, b).find("computed with: library, CPU A\n          and: library, CPU B\n"),
            std::string::npos)
      << diff_text(a, b);
  EXPECT_TRUE(compare_runs(a, b).equal()) << "the same numbers all the same";
}

}  // namespace
}  // namespace wisp
