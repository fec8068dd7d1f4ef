#include "apps/run/run_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

TEST(Metrics, ReadsRowsAndReplacesStepsMadeAgain) {
  const TempDir dir;
  const std::string path =
      dir.write("metrics.jsonl",
                R"({"type":"step","step":1,"loss":3.0,"seconds":0.5,"bytes_sent_total":10}
{"type":"step","step":2,"loss":2.5,"seconds":1.0,"bytes_sent_total":20}
{"type":"step","step":2,"loss":2.25,"seconds":1.5,"bytes_sent_total":30,"loader_ms":1,"compute_ms":2,"wait_ms":3,"encode_ms":4,"wire_ms":5,"decode_ms":6}
{"type":"epoch","step":2,"test_accuracy":null,"train_loss":2.6}
{"type":"step","step":3,"lo)");
  const Metrics metrics = read_metrics(path);
  ASSERT_EQ(metrics.steps.size(), 2u) << "the line that was cut off is none";
  EXPECT_EQ(metrics.steps[0].loss, 3.0);
  EXPECT_EQ(metrics.steps[1].loss, 2.25);
  EXPECT_EQ(metrics.steps[1].bytes_sent_total, 30.0);
  const StepTimes& times = metrics.steps[1].times;
  EXPECT_EQ(times.loader_ms, 1.0);
  EXPECT_EQ(times.compute_ms, 2.0);
  EXPECT_EQ(times.wait_ms, 3.0);
  EXPECT_EQ(times.encode_ms, 4.0);
  EXPECT_EQ(times.wire_ms, 5.0);
  EXPECT_EQ(times.decode_ms, 6.0);
  EXPECT_TRUE(std::isnan(metrics.steps[0].times.compute_ms)) << "of an older program";
  EXPECT_TRUE(std::isnan(metrics.steps[1].metric)) << "not there";
  ASSERT_EQ(metrics.epochs.size(), 1u);
  EXPECT_TRUE(std::isnan(metrics.epochs[0].test_metric));
  EXPECT_TRUE(std::isnan(metrics.epochs[0].validation_metric));
}

TEST(Summary, AScoreThatIsNoNumberReadsBackAsThat) {
  const TempDir dir;
  const Summary written{.scores = {{"test_perplexity", std::nan("")}}, .work = "tokens"};
  const Summary read = Summary::from_json(dir.write("summary.json", written.json()));
  ASSERT_EQ(read.scores.size(), 1u);
  EXPECT_TRUE(std::isnan(read.score_or_nan("test_perplexity")));
  EXPECT_EQ(read.work, "tokens");
}

TEST(Summary, OfAnOlderProgramDoesNotSayWhatItWasComputedWith) {
  const TempDir dir;
  Summary written{.numerics = "library 1.2, CPU"};
  std::string text = written.json();
  EXPECT_EQ(Summary::from_json(dir.write("new.json", text)).numerics, "library 1.2, CPU");
  const size_t line = text.find("  \"numerics\"");
  text.erase(line, text.find('\n', line) + 1 - line);
  EXPECT_EQ(Summary::from_json(dir.write("old.json", text)).numerics, kNotRecorded);
}

TEST(Summary, HoldsTheTestUnits) {
  const TempDir dir;
  EXPECT_TRUE(Summary::from_json(dir.write("none.json", Summary().json())).test_units.empty());
  const Summary written{.scores = {{"test_wer", 0.25}},
                        .test_units = {{"anna", 3, 8}, {"ben \xff", 0, 4}}};
  const Summary read = Summary::from_json(dir.write("summary.json", written.json()));
  EXPECT_EQ(read.scores, written.scores) << "units are no score";
  ASSERT_EQ(read.test_units.size(), 2u);
  EXPECT_EQ(read.test_units[0].name, "anna");
  EXPECT_EQ(read.test_units[0].sum, 3.0);
  EXPECT_EQ(read.test_units[0].divisor, 8.0);
  EXPECT_EQ(read.test_units[1].name, "ben \uFFFD") << "no UTF-8, and no reason to lose a run";
}

TEST(Summary, NamesTheTestUnitThatIsNone) {
  const TempDir dir;
  const auto complaint = [&](const std::string& units) {
    const std::string path = dir.write("summary.json", "{\"units\": " + units + "}");
    const std::string error = error_of([&] { Summary::from_json(path); });
    EXPECT_TRUE(error.starts_with(path + ": units")) << error;
    return error.substr(std::min(error.size(), path.size() + 2));
  };
  const std::string expected = R"(, expected {"sum": a number, "divisor": a number})";
  EXPECT_EQ(complaint("[]"), "units is [], expected an object");
  EXPECT_EQ(complaint(R"({"anna": 3})"), "units.anna is 3" + expected);
  EXPECT_EQ(complaint(R"({"anna": {"sum": 3}})"), "units.anna is {\"sum\":3}" + expected);
  EXPECT_EQ(complaint(R"({"anna": {"sum": 3, "divisor": "8"}})"),
            R"(units.anna is {"sum":3,"divisor":"8"})" + expected);
}

TEST(Metrics, NamesTheLineThatIsNoRow) {
  const TempDir dir;
  const std::string path = dir.write("metrics.jsonl", "{\"type\":\"step\",\"step\":1}\noops\n");
  EXPECT_EQ(error_of([&] { read_metrics(path); }).find(path + ":2: no row of metrics"), 0u);
}

TEST(RunRecord, HoldsWhatTheRunLeft) {
  const TempDir dir;
  tiny_train(dir / "run", {"workers=2", "train.epochs=1", "trace.first_step=1", "trace.steps=1"});
  const RunRecord run = RunRecord::read(dir / "run");
  EXPECT_EQ(run.name, "run");
  EXPECT_EQ(RunRecord::read(dir / "run/").name, "run");
  EXPECT_EQ(run.version + "\n", read_text(dir / "run/commit.txt"));
  EXPECT_EQ(run.metrics.steps.size(), 4u);
  EXPECT_EQ(run.metrics.epochs.size(), 1u);
  ASSERT_TRUE(run.summary);
  EXPECT_EQ(run.summary->steps, 4);
  ASSERT_FALSE(run.spans.empty());
  for (const TracedSpan& span : run.spans) {
    EXPECT_EQ(span.step, 1);
    EXPECT_TRUE(span.worker == 0 || span.worker == 1);
    EXPECT_LE(span.begin_us, span.end_us);
  }
}

TEST(RunRecord, OfARunThatIsNotOverHasNoSummary) {
  const TempDir dir;
  dir.write("run/config.toml", "seed = 1\n");
  dir.write("run/metrics.jsonl", "");
  EXPECT_FALSE(RunRecord::read(dir / "run").summary);
  EXPECT_EQ(error_of([&] { RunRecord::read(dir / "none"); }),
            dir / "none" + " holds no run (no config.toml)");
}

TEST(RunRecord, FindsTheKeysThatDiffer) {
  RunRecord a, b;
  a.config = {{"seed", "1"}, {"workers", "4"}, {"compression.ratio", "0.01"}};
  b.config = {{"seed", "2"}, {"workers", "4"}};
  const auto rows = config_differences({a, b});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].key, "seed");
  EXPECT_EQ(rows[0].values, (std::vector<std::optional<std::string>>{"1", "2"}));
  EXPECT_EQ(rows[1].key, "compression.ratio");
  EXPECT_EQ(rows[1].values, (std::vector<std::optional<std::string>>{"0.01", std::nullopt}));
}

}  // namespace
}  // namespace wisp
