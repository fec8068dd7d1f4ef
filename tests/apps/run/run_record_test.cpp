#include "apps/run/run_record.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

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

TEST(Summary, ReadsBackWhateverWasWritten) {
  const TempDir dir;
  const double nan = std::nan("");
  const Summary written{.scores = {{"test_wer", nan}},
                        .test_units = {{"\xff", 1, nan}, {"\xfe", 2, 8}},  // one name in JSON
                        .work_per_s = std::numeric_limits<double>::infinity(),
                        .bytes_other = nan,
                        .reduction_sent = nan};
  const Summary read = Summary::from_json(dir.write("summary.json", written.json()));
  EXPECT_TRUE(std::isnan(read.work_per_s));
  EXPECT_TRUE(std::isnan(read.reduction_sent));
  EXPECT_TRUE(std::isnan(read.bytes_other));
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

/// A run directory as a stranger may pack it.
class StrangersRun : public testing::Test {
 protected:
  StrangersRun() {
    dir_.write("config.toml", "seed = 1\n");
    dir_.write("metrics.jsonl", "");
  }
  std::string complaint() const {
    return error_of([&] { RunRecord::read(dir_.path()); });
  }
  std::string complaint(const std::string& name, const std::string& text) const {
    dir_.write(name, text);
    const std::string error = complaint();
    fs::remove(dir_ / name);
    return error.starts_with(dir_ / name) ? error.substr((dir_ / name).size()) : error;
  }

  const TempDir dir_;
};

TEST_F(StrangersRun, NeitherHangsNorFillsTheMemory) {
  EXPECT_EQ(complaint(), "no error");
  for (const char* name :
       {"commit.txt", "metrics.jsonl", "summary.json", "facts.json", "trace.json", "config.toml"}) {
    SCOPED_TRACE(name);
    fs::rename(dir_ / "config.toml", dir_ / "config");
    fs::remove(dir_ / name);
    fs::create_symlink("/dev/zero", dir_ / name);
    if (!fs::exists(dir_ / "config.toml")) fs::create_symlink("config", dir_ / "config.toml");
    EXPECT_NE(complaint().find("it is no file, but a device"), std::string::npos) << complaint();
    fs::remove(dir_ / name);
    ASSERT_EQ(mkfifo((dir_ / name).c_str(), 0600), 0);
    EXPECT_NE(complaint().find("it is no file, but a pipe"), std::string::npos) << complaint();
    fs::remove(dir_ / name);
    fs::rename(dir_ / "config", dir_ / "config.toml");
    dir_.write("metrics.jsonl", "");
  }
}

TEST_F(StrangersRun, IsNestedUpToABound) {
  const std::string deep(100'000, '['), objects = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
    return text;
  }();
  for (const std::string& text : {deep, objects, "{\"traceEvents\":" + deep}) {
    EXPECT_EQ(complaint("trace.json", text), " is no trace: it is nested too deeply");
    EXPECT_EQ(complaint("summary.json", text), ": it is nested too deeply");
    EXPECT_EQ(complaint("facts.json", text), " is damaged or incomplete: it is nested too deeply");
    EXPECT_EQ(error_of([&] { read_metrics(dir_.write("rows", text + "\n")); }),
              dir_ / "rows:1: no row of metrics: it is nested too deeply");
  }
}

TEST_F(StrangersRun, NamesTheValueOfAnotherType) {
  std::string summary = Summary{.work = "words"}.json();
  EXPECT_EQ(complaint("summary.json", "[]"), ": is no summary, but array");
  EXPECT_EQ(complaint("summary.json", "{}"), ": there is no steps");
  EXPECT_EQ(complaint("summary.json", "{\"test_loss\": \"low\"}"),
            ": test_loss is \"low\", expected a number");
  summary.replace(summary.find("\"steps\": 0"), 10, "\"steps\": 1e300");
  EXPECT_EQ(complaint("summary.json", summary), ": steps is 1e+300, expected a whole number");

  const auto trace = [&](const std::string& event) {
    const std::string lane =
        R"({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"wire"}})";
    return complaint("trace.json", "{\"traceEvents\":[" + lane + "," + event + "]}");
  };
  EXPECT_EQ(trace(R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1,"args":{"step":1}})"),
            "no error");
  EXPECT_EQ(trace("7"), " is no trace: there is no name");
  EXPECT_EQ(trace(R"({"ph":"X","name":"a","pid":9,"tid":1,"ts":0,"dur":1,"args":{"step":1}})"),
            " is no trace: there is no name of thread 1 in process 9");
  EXPECT_EQ(trace(R"({"ph":"X","name":"a","pid":1e99,"tid":1,"ts":0,"dur":1,"args":{}})"),
            " is no trace: pid is 1e+99, expected a whole number");
  EXPECT_EQ(complaint("trace.json", "[]"), " is no trace: there is no traceEvents");
  for (const char* row : {"7", "{\"step\": 1}", "{\"type\": \"step\", \"step\": \"x\"}",
                          "{\"type\": \"step\", \"step\": 1, \"step\": 2}"}) {
    EXPECT_EQ(error_of([&] {
                read_metrics(dir_.write("rows", concat(row, "\n")));
              }).find(dir_ / "rows:1: no row of metrics: "),
              0u)
        << row;
  }
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
