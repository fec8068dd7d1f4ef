#include "apps/run/reporter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/event_reader.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

using nlohmann::json;

std::vector<json> rows_of(const std::string& run, const std::string& type) {
  std::vector<json> rows;
  std::ifstream file(run + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    json row = json::parse(line);
    if (row.at("type") == type) rows.push_back(std::move(row));
  }
  return rows;
}

std::map<std::string, float> scalars_at(const std::vector<ReadEvent>& events, int64_t step) {
  std::map<std::string, float> scalars;
  for (const ReadEvent& event : events) {
    if (event.step == step) scalars.insert(event.scalars.begin(), event.scalars.end());
  }
  return scalars;
}

const Overrides kTwo = {"workers=2", "train.epochs=2"};

TEST(Reporter, AddsUpBytesAndSecondsAlsoOverAResume) {
  const TempDir dir;
  tiny_train(dir / "run", kTwo + Overrides{"train.max_steps=5"});
  tiny_train(dir / "run", kTwo + Overrides{"train.max_steps=8"}, RunDirectory::Open::resume);
  const std::vector<json> rows = rows_of(dir / "run", "step");
  ASSERT_EQ(rows.size(), 8u);
  int64_t bytes = 0;
  double seconds = 0.0;
  for (const json& row : rows) {
    bytes += row.at("bytes_sent").get<int64_t>();
    EXPECT_EQ(row.at("bytes_sent_total"), bytes) << row;
    EXPECT_GT(row.at("seconds"), seconds) << row;
    seconds = row.at("seconds");
  }
  const json last = rows_of(dir / "run", "epoch").back();
  EXPECT_EQ(last.at("bytes_sent_total"), bytes);
  EXPECT_GE(last.at("seconds"), seconds);
}

TEST(Reporter, TellsTensorBoardWhatTheMetricsSay) {
  const TempDir dir;
  tiny_train(dir / "run", kTwo);
  const auto events = read_events(read_text(dir / "run/events.tfevents.0000000000"));
  const json row = rows_of(dir / "run", "step").at(2);
  const auto scalars = scalars_at(events, 3);
  EXPECT_EQ(scalars.at("train/loss"), row.at("loss").get<float>());
  EXPECT_EQ(scalars.at("train/lr"), row.at("lr").get<float>());
  EXPECT_EQ(scalars.at("train/reduction_sent"), row.at("reduction_sent").get<float>());
  EXPECT_EQ(scalars.at("bytes/sent_total"), row.at("bytes_sent_total").get<float>());
  EXPECT_EQ(scalars.at("ms/wire"), row.at("wire_ms").get<float>());
  EXPECT_EQ(scalars_at(events, 8).at("epoch/test_accuracy"),
            rows_of(dir / "run", "epoch").at(1).at("test_accuracy").get<float>());
}

TEST(Reporter, WritesARowForEachMeasurementOfCompression) {
  const TempDir dir;
  const Overrides topk = kTwo + Overrides{"compression.method=topk", "compression.ratio=0.05"};
  tiny_train(dir / "run", topk + Overrides{"compression.probe_every=3"});
  tiny_train(dir / "other", topk);
  const std::vector<json> rows = rows_of(dir / "run", "health");
  ASSERT_EQ(rows.size(), 2u);  // in 8 steps
  EXPECT_EQ(rows[0].at("step"), 3);
  EXPECT_EQ(rows[1].at("step"), 6);
  const json& row = rows[1];
  EXPECT_GT(row.at("residual"), 1.0);
  EXPECT_GT(row.at("staleness"), 1.0);
  EXPECT_LT(row.at("staleness"), 6.0);
  EXPECT_GT(row.at("cosine"), 0.0);
  EXPECT_LT(row.at("cosine"), 1.0);
  const auto scalars =
      scalars_at(read_events(read_text(dir / "run/events.tfevents.0000000000")), 6);
  EXPECT_EQ(scalars.at("health/residual"), row.at("residual").get<float>());
  EXPECT_EQ(scalars.at("health/cosine"), row.at("cosine").get<float>());
  EXPECT_EQ(rows_of(dir / "other", "health").size(), 0u);
  for (size_t step = 0; step < 8; ++step) {
    for (const char* key : {"loss", "bytes_sent", "bytes_encoded"})
      EXPECT_EQ(rows_of(dir / "run", "step")[step].at(key),
                rows_of(dir / "other", "step")[step].at(key));
  }
}

/// The names are printed on stderr, even in quiet runs.
TEST(Reporter, NamesGradientsThatCountedAsZero) {
  const TempDir dir;
  const Prepared run(tiny_config());
  const RunDirectory directory(dir / "run", RunDirectory::Open::create);
  const RunFacts facts;
  StepReport report;
  report.cost.nonfinite = {"layer0.weight"};
  report.cost.too_large = {"layer1.bias"};
  const Position position{.steps_per_epoch = 1, .step = 7};
  for (const bool quiet : {false, true}) {
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    Reporter(directory, run.options(), facts, quiet).step({.position = position, .report = report});
    EXPECT_EQ(testing::internal::GetCapturedStdout().empty(), quiet);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "wisp: step 7: the gradient of layer0.weight was not finite on this worker; it "
              "counted as zero\n"
              "wisp: step 7: the gradient of layer1.bias was finite, but had a norm above 2^96, on "
              "this worker; it counted as zero\n");
  }
}

TEST(Reporter, TellsOnceWhatAMetricWarnsOf) {
  const TempDir dir;
  const Prepared run(tiny_config());
  RunDirectory directory(dir / "run", RunDirectory::Open::create);
  directory.make();
  RunFacts facts;
  facts.metrics = {{.name = "wer"},
                   {.name = "blank",
                    .percent = true,
                    .alarm = Alarm{.above = 0.9, .epochs = 2, .meaning = "say nothing"}}};
  Reporter reporter(directory, run.options(), facts, /*quiet=*/true);
  reporter.open_metrics();
  std::string told;
  for (const double blank : {0.95, 0.85, 0.95, 0.99, 0.97, 0.1, 1.0, 1.0}) {
    const TallyValues train{{1.0, 1.0, 0.5, 1.0, blank, 1.0}};
    testing::internal::CaptureStderr();
    reporter.epoch(1.0, 1, train, {}, {}, 1.0, {});
    const std::string text = testing::internal::GetCapturedStderr();
    told +=
        text.find("say nothing") == std::string::npos ? "-" : text.substr(15, text.find(" %") - 15);
  }
  EXPECT_EQ(told, "---99.00---100.00");
}

TEST(Reporter, SaysThatAnEvaluationIsNotFinite) {
  const TempDir dir;
  const Prepared run(tiny_config());
  RunDirectory directory(dir / "run", RunDirectory::Open::create);
  directory.make();
  const RunFacts facts;
  Reporter reporter(directory, run.options(), facts, /*quiet=*/true);
  reporter.open_metrics();
  const TallyValues train{{1.0, 1.0, 0.5, 1.0}}, bad{{std::nan(""), 1.0, 0.5, 1.0}};
  for (const TallyValues& test : {train, bad}) {
    testing::internal::CaptureStderr();
    reporter.epoch(1.0, 1, train, {.test = test}, {}, 1.0, {});
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              std::isnan(test.mean_loss())
                  ? "wisp: epoch 1: the loss is not finite; has the model diverged?\n"
                  : "");
  }
}

TEST(Reporter, ResumesInAnEventFileThatReplacesLaterSteps) {
  const TempDir dir;
  tiny_train(dir / "run", kTwo + Overrides{"train.max_steps=4"});
  dir.write("run/events.tfevents.0000000007", "of a resume that saved nothing");
  tiny_train(dir / "run", kTwo, RunDirectory::Open::resume);
  const auto events = read_events(read_text(dir / "run/events.tfevents.0000000004"));
  EXPECT_TRUE(events.at(1).start);
  EXPECT_EQ(events.at(1).step, 5);
  EXPECT_EQ(events.at(2).step, 5);
  EXPECT_FALSE(std::filesystem::exists(dir / "run/events.tfevents.0000000007"));
  EXPECT_TRUE(std::filesystem::exists(dir / "run/events.tfevents.0000000000"));
}

TEST(Reporter, WritesNoEventsIfNotAsked) {
  const TempDir dir;
  tiny_train(dir / "run", kTwo + Overrides{"train.tensorboard=false", "train.max_steps=1"});
  EXPECT_FALSE(std::filesystem::exists(dir / "run/events.tfevents.0000000000"));
}

TEST(Reporter, TellsWhenTheNextLineComesIfThatIsFar) {
  const TempDir dir;
  const RunDirectory directory(dir / "run", RunDirectory::Open::create);
  const RunFacts facts;
  const StepReport report;
  const auto after_two_steps = [&](int64_t log_every, double seconds) {
    TrainOptions options;
    options.log_every = log_every;
    Reporter reporter(directory, options, facts, false);
    testing::internal::CaptureStdout();
    for (const int64_t step : {1, 2}) {
      const Position position{.in_epoch = step, .steps_per_epoch = 390, .step = step};
      reporter.step({.position = position, .report = report, .seconds_per_step = seconds});
    }
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(after_two_steps(50, 2.0),
            "the first step took 0:02; the next line comes after 49 more, in about 1:38 "
            "(train.log_every is 50)\n");
  EXPECT_EQ(after_two_steps(1000, 2.0),
            "the first step took 0:02; the next line comes after 389 more, in about 12:58 "
            "(train.log_every is 1000)\n")
      << "the end of an epoch has a line";
  EXPECT_EQ(after_two_steps(50, 0.2), "");
  EXPECT_EQ(after_two_steps(1, 100.0).find("next line"), std::string::npos);
}

}  // namespace
}  // namespace wisp
