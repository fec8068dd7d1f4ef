#include "apps/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/run/run_record.h"
#include "core/base/machine.h"
#include "tests/support/error_of.h"
#include "tests/support/sound_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

using Open = RunDirectory::Open;
using nlohmann::json;

std::vector<std::string> keys_of(const nlohmann::ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

std::vector<json> rows_of(const std::string& path) {
  std::vector<json> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) rows.push_back(json::parse(line));
  return rows;
}

const Overrides kDgc = {"workers=3", "train.batch=24", "compression.method=dgc",
                        "compression.ratio=0.01", "train.epochs=2"};

TEST(Train, LeavesAWholeRunDirectory) {
  const TempDir dir;
  const Summary summary =
      tiny_train(dir / "run", kDgc + Overrides{"trace.first_step=1", "trace.steps=2"});
  for (const char* name : {"config.toml", "commit.txt", "metrics.jsonl", "trace.json",
                           "summary.json", "checkpoints/step_10/manifest.json"}) {
    EXPECT_TRUE(std::filesystem::exists(dir / "run/" + name)) << name;
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir / "run"))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  EXPECT_EQ(read_text(dir / "run/commit.txt").substr(0, 2), "0.");
  EXPECT_EQ(summary.steps, 10);
}

TEST(Train, APlateauOfTheValidationLossLowersTheRate) {
  const TempDir dir;
  // no later loss can fall below a hundredth of the best
  tiny_train(dir / "run", {"data.train_count=160", "data.validation=32", "schedule.kind=plateau",
                           "schedule.threshold=0.99", "schedule.patience=1", "schedule.factor=0.5",
                           "optimizer.lr=0.08"});
  std::vector<double> rates;
  for (const json& row : rows_of(dir / "run/metrics.jsonl")) {
    if (row.contains("lr") && row["step"].get<int64_t>() % 4 == 0) rates.push_back(row["lr"]);
  }
  // evaluations 2 and 3 are not better, so the fourth epoch has half the learning rate
  EXPECT_EQ(rates, (std::vector<double>{0.08, 0.08, 0.08, 0.04}));
}

TEST(Train, WritesAConfigThatReadsBackEqual) {
  const TempDir dir;
  tiny_train(dir / "run", kDgc + Overrides{"train.max_steps=1"});
  const std::string saved = read_text(dir / "run/config.toml");
  const Prepared again(Config::load(dir / "run/config.toml", {}));
  EXPECT_EQ(again.config().resolved(), saved);
  EXPECT_EQ(again.options().workers, 3);
}

TEST(Train, SummaryHasTheAgreedKeysAndSaneValues) {
  const TempDir dir;
  tiny_train(dir / "run", kDgc);
  const auto row = nlohmann::ordered_json::parse(read_text(dir / "run/summary.json"));
  EXPECT_EQ(
      keys_of(row),
      (std::vector<std::string>{
          "test_accuracy", "images_per_s", "steps",          "skipped",           "bytes_raw",
          "bytes_encoded", "bytes_sent",   "bytes_received", "reduction_encoded", "reduction_sent",
          "loader_ms",     "compute_ms",   "encode_ms",      "wait_ms",           "wire_ms",
          "decode_ms",     "numerics",     "bytes_other",    "bytes_distance",    "config",
          "bottleneck"}));
  const double parameters = 3072 * 24 + 24 + 24 * 10 + 10;
  EXPECT_EQ(row.at("steps"), 10);
  EXPECT_EQ(row.at("skipped"), 0);
  const std::string numerics = row.at("numerics");
  EXPECT_NE(numerics.find("1 threads, 1 comm threads, " + machine()), std::string::npos)
      << numerics;
  EXPECT_EQ(numerics, json::parse(read_text(dir / "run/checkpoints/step_10/manifest.json"))
                          .at("facts")
                          .at("numerics"));
  EXPECT_EQ(row.at("bytes_raw"), 4 * parameters);
  EXPECT_GE(row.at("test_accuracy"), 0.0);
  EXPECT_LE(row.at("test_accuracy"), 1.0);
  EXPECT_GT(row.at("bytes_encoded"), 5 * 0.01 * parameters);  // 4 bytes a value, and its position
  EXPECT_LT(row.at("bytes_encoded"), 7 * 0.01 * parameters);
  EXPECT_DOUBLE_EQ(row.at("reduction_encoded"),
                   row.at("bytes_raw").get<double>() / row.at("bytes_encoded").get<double>());
  // An all-reduce among three sends 2 * 2 / 3 of the bytes, a gather sends two copies of the
  // payload. The counts are rounded to whole bytes.
  EXPECT_NEAR(row.at("reduction_sent").get<double>(),
              4.0 / 3.0 * 4 * parameters / row.at("bytes_sent").get<double>(), 0.01);
  EXPECT_GT(row.at("bytes_sent"), 2 * 5 * 0.01 * parameters);
  for (const char* key : {"images_per_s", "compute_ms", "encode_ms", "wire_ms", "decode_ms"})
    EXPECT_GT(row.at(key), 0.0) << key;
}

TEST(Train, MetricsHaveALineForEachStepAndEpoch) {
  const TempDir dir;
  tiny_train(dir / "run", kDgc + Overrides{"train.eval_every=2"});
  const std::vector<json> rows = rows_of(dir / "run/metrics.jsonl");
  ASSERT_EQ(rows.size(), 12u);
  for (const char* key :
       {"step", "epoch", "lr", "loss", "accuracy", "images_per_s", "bytes_raw", "bytes_encoded",
        "bytes_sent", "bytes_received", "bytes_sent_total", "reduction_sent", "seconds",
        "loader_ms", "compute_ms", "encode_ms", "wait_ms", "wire_ms", "decode_ms"})
    EXPECT_TRUE(rows[0].contains(key)) << key;
  EXPECT_EQ(rows[0].at("lr"), 0.1);
  EXPECT_EQ(rows[4].at("step"), 5);
  EXPECT_EQ(rows[5].at("type"), "epoch");
  EXPECT_EQ(rows[5].at("epoch"), 1.0);
  EXPECT_TRUE(rows[5].at("test_accuracy").is_null()) << "not evaluated in this epoch";
  EXPECT_TRUE(rows[11].at("test_accuracy").is_number());
}

TEST(Train, TraceHasTheFiveLanesOfEachWorker) {
  const TempDir dir;
  tiny_train(dir / "run", kDgc + Overrides{"trace.first_step=1", "trace.steps=2"});
  const json trace = json::parse(read_text(dir / "run/trace.json"));
  std::map<std::pair<int, int>, std::string> lanes;
  std::map<int, std::set<std::string>> used;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M" && event.at("name") == "thread_name")
      lanes[{event.at("pid"), event.at("tid")}] = event.at("args").at("name");
  }
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X")
      used[event.at("pid")].insert(lanes.at({event.at("pid"), event.at("tid")}));
  }
  const std::set<std::string> all = {"compute", "decode", "encode", "wait", "wire"};
  ASSERT_EQ(used.size(), 3u);
  for (const auto& [worker, names] : used) EXPECT_EQ(names, all) << "worker " << worker;
}

/// The steps of a trace's spans for each lane, in order of time. It fails if two spans overlap.
std::map<int, std::vector<int64_t>> traced_steps(const std::string& path) {
  std::map<int, std::map<double, json>> lanes;
  const json trace = json::parse(read_text(path));
  for (const json& event : trace.at("traceEvents"))
    if (event.at("ph") == "X") lanes[event.at("tid")][event.at("ts")] = event;
  std::map<int, std::vector<int64_t>> steps;
  for (const auto& [lane, events] : lanes) {
    for (const auto& [begin, event] : events) steps[lane].push_back(event.at("args").at("step"));
    EXPECT_TRUE(std::ranges::is_sorted(steps[lane])) << "lane " << lane;
  }
  return steps;
}

TEST(Train, AResumedRunKeepsTheSpansOfItsEarlierSteps) {
  const TempDir dir;
  const auto train_to = [&](int64_t steps, const std::string& workers, Open open) {
    tiny_train(dir / "run",
               kDgc + Overrides{"trace.first_step=1", "trace.steps=3", workers,
                                concat("train.max_steps=", steps)},
               open);
    return traced_steps(dir / "run/trace.json");
  };
  const auto of_all = [](const std::map<int, std::vector<int64_t>>& lanes) {
    std::set<int64_t> all;
    for (const auto& [lane, steps] : lanes) all.insert(steps.begin(), steps.end());
    return all;
  };
  EXPECT_EQ(of_all(train_to(3, "workers=3", Open::create)), (std::set<int64_t>{1, 2}));
  const auto whole = train_to(5, "workers=3", Open::resume);
  EXPECT_EQ(of_all(whole), (std::set<int64_t>{1, 2, 3}));
  EXPECT_EQ(whole.size(), 15u) << "lanes";
  EXPECT_EQ(train_to(6, "workers=2", Open::resume), whole) << "nothing more was recorded";
  EXPECT_EQ(RunRecord::read(dir / "run").spans.back().lane, "decode") << "all lanes have names";
  EXPECT_EQ(of_all(train_to(2, "workers=3", Open::overwrite)), (std::set<int64_t>{1}));
}

TEST(Train, ARunThatWasStoppedLeavesItsSpans) {
  const TempDir dir;
  std::atomic<int> asked = 0;
  const Config config = tiny_config({"trace.first_step=1", "trace.steps=2"});
  EXPECT_FALSE(train(config, {dir / "run", Open::create, true, [&] { return ++asked > 2; }}));
  EXPECT_FALSE(traced_steps(dir / "run/trace.json").empty());
}

TEST(Train, RefusesADirectoryThatHoldsARun) {
  const TempDir dir;
  const Overrides one = {"train.max_steps=1"};
  tiny_train(dir / "run", one);
  const std::string error = error_of([&] { tiny_train(dir / "run", one); });
  EXPECT_NE(error.find("holds a run already"), std::string::npos) << error;
  EXPECT_NE(error.find("--resume"), std::string::npos) << error;
  dir.write("run/notes.txt", "somebody's");
  dir.write("run/checkpoints/step_900/manifest.json", "of the run before");
  EXPECT_EQ(tiny_train(dir / "run", one, Open::overwrite).steps, 1);
  EXPECT_FALSE(std::filesystem::exists(dir / "run/checkpoints/step_900"));
  EXPECT_EQ(read_text(dir / "run/notes.txt"), "somebody's");
  EXPECT_EQ(error_of([&] { evaluate_run(dir / "nothing", {}); }),
            dir / "nothing holds no run (no config.toml)");
}

TEST(Train, RefusesADirectoryInWhichAnotherProcessTrains) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=1"});
  const FileLock other(dir / "run/lock");
  for (const Open how : {Open::resume, Open::overwrite}) {
    EXPECT_EQ(error_of([&] { tiny_train(dir / "run", {}, how); }),
              dir / "run/lock: is held by another process");
  }
  EXPECT_EQ(Summary::from_json(dir / "run/summary.json").steps, 1);
}

TEST(Train, ARunThatCannotStartLeavesTheOldOneAlone) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=1"});
  const std::string config = read_text(dir / "run/config.toml");
  const std::string error = error_of([&] {
    tiny_train(dir / "run", {"workers=200", "train.batch=200"}, Open::overwrite);
  });
  EXPECT_NE(error.find("128 samples for 200 workers"), std::string::npos) << error;
  EXPECT_EQ(read_text(dir / "run/config.toml"), config);
}

TEST(Evaluate, FindsTheAccuracyThatTheRunReported) {
  const TempDir dir;
  const Summary summary = tiny_train(dir / "run", kDgc);
  const RunEvaluation evaluation = evaluate_run(dir / "run", {});
  EXPECT_EQ(evaluation.test.metrics[0], summary.score("test_accuracy"));
  EXPECT_EQ(evaluation.test.targets, 40);
  EXPECT_FALSE(evaluation.validation);
  const std::string none = error_of([&] { evaluate_run(dir / "none", {}); });
  EXPECT_NE(none.find("none holds no run"), std::string::npos) << none;
}

/// Writes 60 lines of 11 words, including `<eos>`.
std::string write_words(const TempDir& dir) {
  const std::string path = dir / "words.txt";
  std::ofstream text(path);
  for (int line = 0; line < 60; ++line)
    text << "the cat saw the dog and sat on a " << line % 7 << "\n";
  return path;
}

TEST(Evaluate, ReadsATextInAsManyColumnsAsAsked) {
  const TempDir dir;
  const std::string config = WISP_CONFIGS "/text_lstm.toml";
  const Overrides small = {"data.path=" + write_words(dir),
                           "model.units=8",
                           "train.batch=4",
                           "data.window=5",
                           "train.max_steps=3",
                           "threads=1"};
  train(Config::load(config, small), {dir / "run", Open::create, true});
  const auto evaluated = [&](const std::string& columns, const std::string& workers) {
    return evaluate_run(dir / "run",
                        Overrides{"train.eval_batch=" + columns, "workers=" + workers});
  };
  const RunEvaluation four = evaluated("0", "2"), one = evaluated("1", "1"),
                      two = evaluated("2", "2");
  EXPECT_EQ(four.test.targets, 3 * 11 - 1);  // every token but the first
  EXPECT_EQ(one.test.targets, four.test.targets);
  EXPECT_EQ(two.test.targets, four.test.targets);
  EXPECT_NEAR(evaluated("4", "1").test.metrics[0], four.test.metrics[0], 1e-5);
  EXPECT_NE(one.test.metrics, two.test.metrics);  // one column fewer starts from zero state
  EXPECT_NE(error_of([&] { evaluated("3", "2"); }).find("train.eval_batch is 3, which 2 workers"),
            std::string::npos);
}

/// Writes utterances with a tenth of a second of silence. Returns the path of their manifest.
std::string write_sounds(const TempDir& dir) {
  std::string list = "audio,text\n";
  for (int i = 0; i < 8; ++i) {
    dir.write(concat(i, ".wav"), wav_file(std::string(3200, '\0')));
    list += concat(i, ".wav,A\n");
  }
  return dir.write("sounds.csv", list);
}

TEST(Configs, EveryShippedOneTrains) {
  const std::filesystem::path folder = WISP_CONFIGS;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path().string());
    const TempDir dir;
    const std::string text = read_text(entry.path().string());
    const bool is_text = text.find("lstm_lm") != std::string::npos;
    const bool is_speech = text.find("deepspeech") != std::string::npos;
    const bool is_imagenet = entry.path().stem().string().starts_with("imagenet");
    if (is_speech && !WISP_HAS_SNDFILE) continue;
    Overrides small = {"train.batch=8", "train.max_steps=2", "threads=1"};
    const Overrides images = {"data.name=synthetic", "data.train_count=64", "data.test_count=8"};
    const Overrides words = {"data.name=text", "data.path=" + write_words(dir), "data.window=5",
                             "model.units=8"};
    const Overrides sounds = {"data.name=speech", "data.train=" + write_sounds(dir),
                              "data.test=" + write_sounds(dir), "model.units=8"};
    const Overrides& data = is_text ? words : is_speech ? sounds : images;
    small.insert(small.end(), data.begin(), data.end());
    if (is_imagenet) small.insert(small.end(), {"workers=2", "data.side=64"});
    if (text.find("\"vgg\"") != std::string::npos) {  // its step takes gigabytes
      EXPECT_GT(Prepared(Config::load(entry.path().string(), small)).exchange().layers.size(), 0u);
      continue;
    }
    EXPECT_EQ(
        train(Config::load(entry.path().string(), small), {dir / "run", Open::create, true})->steps,
        2);
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(Configs, ResNet50HasTheSizeThatItHasOnImageNet) {
  const Prepared run(Config::load(WISP_CONFIGS "/synthetic_resnet50.toml", {}));
  int64_t numel = 0;
  for (const LayerPlan& layer : run.exchange().layers) numel += layer.numel;
  EXPECT_EQ(numel, 25'557'032);  // torchvision's; the paper gives no count
}

}  // namespace
}  // namespace wisp
