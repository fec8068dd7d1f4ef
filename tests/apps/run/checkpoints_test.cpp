#include "apps/run/checkpoints.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/io/checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

using Open = RunDirectory::Open;

struct ResumeCase {
  const char* name;
  Overrides overrides;
};

class Resume : public testing::TestWithParam<ResumeCase> {};

/// The rows of metrics.jsonl, without the values that depend on the clock.
std::vector<nlohmann::json> metrics_of(const std::string& run) {
  std::vector<nlohmann::json> rows;
  std::ifstream file(run + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    rows.push_back(nlohmann::json::parse(line, nullptr, false));
    if (rows.back().is_discarded()) {  // a line still being written
      rows.pop_back();
      break;
    }
    for (const char* name : {"images_per_s", "seconds", "loader_ms", "compute_ms", "encode_ms",
                             "wait_ms", "wire_ms", "decode_ms"})
      rows.back().erase(name);
  }
  return rows;
}

/// Trains, and stops the run once the metrics have all steps before `last_step`.
void train_until(const std::string& run, const Overrides& overrides, int64_t last_step) {
  const auto stop = [&] {
    const auto rows = metrics_of(run);
    return std::count_if(rows.begin(), rows.end(),
                         [](const auto& row) { return row.at("type") == "step"; }) >= last_step - 1;
  };
  std::filesystem::remove_all(run);  // whose metrics would stay until the first step is made
  EXPECT_FALSE(train(tiny_config(overrides), {run, Open::create, true, stop}));
}

TEST_P(Resume, GoesOnAsIfNothingHadHappened) {
  for (const char* workers : {"workers=1", "workers=3"}) {
    const Overrides run = Overrides{workers, "train.batch=24"} + GetParam().overrides;
    const TempDir dir;
    tiny_train(dir / "whole", run);    // 4 epochs of 5 steps
    for (const int stop : {10, 13}) {  // the end of an epoch, and the middle of one
      SCOPED_TRACE(concat(workers, ", stopped after step ", stop));
      train_until(dir / "cut", run, stop);
      EXPECT_EQ(checkpoint_steps(dir / "cut/checkpoints").back(), stop);
      EXPECT_FALSE(std::filesystem::exists(dir / "cut/summary.json"));
      EXPECT_EQ(tiny_train(dir / "cut", run, Open::resume).steps, 20);
      // all weights, momenta, residuals, counters and facts
      EXPECT_TRUE(checkpoint_content(dir / "cut", 20) == checkpoint_content(dir / "whole", 20));
      EXPECT_EQ(metrics_of(dir / "cut"), metrics_of(dir / "whole"));
      const Summary cut = Summary::from_json(dir / "cut/summary.json");
      const Summary whole = Summary::from_json(dir / "whole/summary.json");
      EXPECT_EQ(cut.bytes_sent, whole.bytes_sent);
      EXPECT_EQ(cut.score("test_accuracy"), whole.score("test_accuracy"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Checkpoint, Resume,
    testing::Values(
        ResumeCase{"dense", {}},
        ResumeCase{"frozen", {"train.freeze=[\"layer0.*\"]", "train.accumulate=2"}},
        ResumeCase{"dampened", {"optimizer.dampening=0.5"}},
        ResumeCase{"adamw_average_plateau",
                   {"optimizer.kind=adamw", "optimizer.lr=0.01", "ema.decay=0.9",
                    "schedule.kind=plateau", "data.train_count=168", "data.validation=40",
                    "schedule.patience=0", "schedule.threshold=0.5", "schedule.factor=0.5"}},
        ResumeCase{"validation_plateau",
                   {"data.train_count=168", "data.validation=40", "schedule.kind=plateau",
                    "schedule.patience=0", "schedule.threshold=0.5", "schedule.factor=0.5"}},
        ResumeCase{"topk", {"compression.method=topk", "compression.ratio=0.02"}},
        ResumeCase{"gtopk", {"compression.method=gtopk", "compression.ratio=0.05"}},
        ResumeCase{
            "oktopk",
            {"compression.method=oktopk", "compression.ratio=0.05", "compression.start_after=3"}},
        ResumeCase{"dgc",
                   {"compression.method=dgc", "compression.ratio=0.01", "compression.warmup=list",
                    "compression.warmup_epochs=2.0", "compression.warmup_list=[1.0, 0.25, 0.05]"}},
        ResumeCase{"variance",
                   {"compression.method=variance", "compression.ratio=0.1", "train.accumulate=2"}},
        ResumeCase{"dpsgd", {"compression.method=dpsgd", "gossip.code=fp16"}},
        ResumeCase{"dcd", {"compression.method=dcd", "gossip.code=ef_signsgd"}},
        ResumeCase{"ecd", {"compression.method=ecd", "gossip.code=fp16", "train.distance_every=3"}},
        ResumeCase{"choco",
                   {"compression.method=choco", "gossip.code=topk", "compression.ratio=0.05",
                    "ema.decay=0.9"}},
        ResumeCase{"local_sgd", {"compression.method=local_sgd", "local_sgd.period=3"}},
        ResumeCase{"bf16",
                   {"train.precision=bf16", "train.backend=reference", "compression.method=dgc",
                    "compression.ratio=0.01"}}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

TEST(Checkpoint, ResumedFinishedRunKeepsItsSummary) {
  const TempDir dir;
  tiny_train(dir / "run");
  const std::string summary = read_text(dir / "run/summary.json");
  const auto files = checkpoint_content(dir / "run", 16);
  EXPECT_EQ(tiny_train(dir / "run", {}, Open::resume).steps, 16);
  EXPECT_EQ(read_text(dir / "run/summary.json"), summary);
  EXPECT_TRUE(checkpoint_content(dir / "run", 16) == files);
}

TEST(Checkpoint, RunKilledBeforeItsSummaryGetsOne) {
  const TempDir dir;
  const double accuracy = tiny_train(dir / "run").score("test_accuracy");
  std::filesystem::remove(dir / "run/summary.json");
  EXPECT_EQ(tiny_train(dir / "run", {}, Open::resume).score("test_accuracy"), accuracy);
  EXPECT_EQ(Summary::from_json(dir / "run/summary.json").steps, 16);
}

/// The bytes of a checkpoint's tensors, of all ranks, whose names start with `beginning`.
std::map<std::string, std::string> tensors_of(const std::string& run, int64_t step,
                                              const std::string& beginning) {
  std::map<std::string, std::string> tensors;
  const std::string folder = checkpoint_path(run + "/checkpoints", step);
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".safetensors") continue;
    const CheckpointReader reader(file.path().string());
    const std::string text = read_text(file.path().string());
    uint64_t header = 0;
    std::memcpy(&header, text.data(), sizeof header);
    for (const std::string& name : reader.names()) {
      if (name.rfind(beginning, 0) != 0) continue;
      const SafetensorsEntry& entry = reader.entry(name);
      tensors[file.path().filename().string() + ": " + name] =
          text.substr(sizeof header + header + static_cast<size_t>(entry.begin),
                      static_cast<size_t>(entry.end - entry.begin));
    }
  }
  return tensors;
}

// Residuals belong to parameters, so a run that resumes with other buckets loses nothing.
TEST(Checkpoint, IsResumedInOtherBucketsInTheSameBits) {
  for (const char* method : {"none", "topk", "dgc", "powersgd", "acpsgd"}) {
    SCOPED_TRACE(method);
    const TempDir dir;
    const Overrides run = Overrides{"workers=3", "train.batch=24"} + method_overrides(method);
    tiny_train(dir / "whole", run);
    tiny_train(dir / "cut", run + Overrides{"train.max_steps=13"});
    tiny_train(dir / "cut",
               run + Overrides{"compression.bucket_bytes=1000", "compression.encode_bytes=0"},
               Open::resume);
    std::vector<std::string> states = {"weight/", "momentum/"};
    if (std::string(method) != "none") states.push_back("residual/");
    if (std::string(method) == "powersgd" || std::string(method) == "acpsgd")
      states.insert(states.end(), {"p/", "q/"});
    for (const std::string& state : states) {
      const auto expected = tensors_of(dir / "whole", 20, state);
      EXPECT_EQ(tensors_of(dir / "cut", 20, state), expected) << state;
      EXPECT_FALSE(expected.empty()) << state;
    }
  }
}

TEST(Checkpoint, NamesTheMethodItBelongsTo) {
  const TempDir dir;
  // Each rank has its own momentum of DGC. An optimizer that took it would make replicas diverge.
  tiny_train(dir / "run", Overrides{"workers=2", "train.max_steps=4"} + method_overrides("dgc"));
  for (const char* other : {"none", "topk"}) {
    const std::string error = error_of([&] {
      tiny_train(dir / "run", Overrides{"workers=2"} + method_overrides(other), Open::resume);
    });
    EXPECT_NE(error.find(std::string("compression.method dgc, but this run has ") + other),
              std::string::npos)
        << error;
  }
}

TEST(Checkpoint, NamesTheTensorOfAnotherModel) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=1"});
  const std::string error =
      error_of([&] { tiny_train(dir / "run", {"model.hidden=[25]"}, Open::resume); });
  EXPECT_NE(error.find("weight/layer"), std::string::npos) << error;
}

TEST(Checkpoint, NamesWhatTheModelHasNoPlaceFor) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=1", "model.hidden=[24, 24]"});
  const std::string error =
      error_of([&] { tiny_train(dir / "run", {"model.hidden=[24]"}, Open::resume); });
  EXPECT_NE(error.find(": has an unexpected tensor "), std::string::npos) << error;
}

TEST(Checkpoint, ADamagedOneIsPassedOver) {
  const TempDir dir;
  const Overrides two = {"workers=2", "checkpoint.every_steps=3"};
  tiny_train(dir / "whole", two);
  for (const char* name : {"shared.safetensors", "rank_1.safetensors", "manifest.json"}) {
    for (const bool cut : {false, true}) {
      SCOPED_TRACE(concat(name, cut ? ", cut" : ", a bit flipped"));
      tiny_train(dir / "run", two + Overrides{"train.max_steps=10"}, Open::overwrite);
      const std::string path = dir / concat("run/checkpoints/step_10/", name);
      std::string bad = read_text(path);
      bad[bad.size() - 100] = static_cast<char>(bad[bad.size() - 100] ^ 1);
      if (cut) bad.resize(bad.size() / 2);
      std::ofstream(path, std::ios::binary) << bad;
      testing::internal::CaptureStderr();
      train(tiny_config(two), {dir / "run", Open::resume, /*quiet=*/true});
      const std::string said = testing::internal::GetCapturedStderr();
      EXPECT_NE(said.find(path), std::string::npos) << said;
      EXPECT_NE(said.find("; going on from step 9"), std::string::npos) << said;
      EXPECT_TRUE(checkpoint_content(dir / "run", 16) == checkpoint_content(dir / "whole", 16));
    }
  }
}

TEST(Checkpoint, WithoutAWholeOneTheNewestOnesDamageIsNamed) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=6"});
  for (const char* step : {"step_4", "step_6"})
    std::filesystem::resize_file(dir / concat("run/checkpoints/", step, "/rank_0.safetensors"), 9);
  const std::string error = error_of([&] { tiny_train(dir / "run", {}, Open::resume); });
  EXPECT_EQ(error.find(dir / "run/checkpoints/step_6/rank_0.safetensors: has 9 bytes"), 0u)
      << error;
}

TEST(Checkpoint, KeepsTheNewestAndTheBest) {
  const TempDir dir;
  const std::string folder = dir / "run/checkpoints";
  tiny_train(dir / "run", {"checkpoint.keep=0", "checkpoint.every_steps=3"});
  EXPECT_EQ(checkpoint_steps(folder), (std::vector<int64_t>{3, 4, 6, 8, 9, 12, 15, 16}));
  tiny_train(dir / "run",
             {"checkpoint.keep=0", "checkpoint.every_epochs=3", "checkpoint.best=false"},
             Open::overwrite);
  EXPECT_EQ(checkpoint_steps(folder), (std::vector<int64_t>{12, 16}));
  // the learning rate soon becomes so large that an early epoch stays the best
  const Overrides held_out = {"data.train_count=168", "data.validation=40"};
  const Summary summary =
      tiny_train(dir / "run",
                 held_out + Overrides{"checkpoint.keep=1", "schedule.kind=multi_step",
                                      "schedule.milestones=[1]", "schedule.factor=1e3"},
                 Open::overwrite);
  const std::vector<int64_t> kept = checkpoint_steps(folder);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[1], 16);
  const double best = evaluate_run(dir / "run", {}, "best").test.metrics[0];
  EXPECT_EQ(best, evaluate_run(dir / "run", {}, std::to_string(kept[0])).test.metrics[0]);
  EXPECT_GT(evaluate_run(dir / "run", {}, "best").validation->metrics[0],
            evaluate_run(dir / "run", {}).validation->metrics[0]);
  EXPECT_EQ(summary.score("best_test_accuracy"), best);
  EXPECT_TRUE(std::isnan(summary.score_or_nan("test_accuracy"))) << "the last weights diverged";
  EXPECT_EQ(error_of([&] { evaluate_run(dir / "run", {}, "1"); }),
            concat(folder, ": there is no checkpoint of step 1; there are checkpoints of steps ",
                   kept[0], ", 16"));
}

TEST(Checkpoint, ABestOneThatWasNotKeptIsMissedWithWords) {
  // the learning rate becomes so large that the second epoch stays the best
  const Overrides spoilt = {"data.train_count=168",     "data.validation=40",
                            "schedule.kind=multi_step", "schedule.milestones=[1]",
                            "schedule.factor=1e3",      "checkpoint.keep=1",
                            "train.max_steps=12"};
  const Overrides to_the_end = {"train.max_steps=0"};
  for (const char* first : {"true", "false"}) {
    SCOPED_TRACE(concat("first ", first));
    const Overrides before = {concat("checkpoint.best=", first)};
    const Overrides after = {*first == 't' ? "checkpoint.best=false" : "checkpoint.best=true"};
    const TempDir dir;
    tiny_train(dir / "run", spoilt + before);
    testing::internal::CaptureStderr();
    const Summary summary =
        *train(tiny_config(spoilt + after + to_the_end), {dir / "run", RunDirectory::Open::resume});
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(
        said.find("the weights of step 8 did best on the validation split, but were not kept"),
        std::string::npos)
        << said;
    EXPECT_TRUE(std::isnan(summary.score_or_nan("best_test_accuracy")));
    EXPECT_EQ(summary.diverged, "the loss of the test set is not finite");
    EXPECT_EQ(error_of([&] { evaluate_run(dir / "run", {}, "best"); }),
              concat(dir / "run/checkpoints",
                     ": the checkpoint of step 8, which did best on the validation split, was not "
                     "kept (checkpoint.best); there are checkpoints of steps 16"));
  }
}

TEST(Checkpoint, AStopDuringEvaluationComesBackToIt) {
  const TempDir dir;
  tiny_train(dir / "whole");
  int64_t polls = 0;
  // the run polls once before each of the 4 steps, then in the evaluation after them
  EXPECT_FALSE(
      train(tiny_config(), {dir / "run", Open::create, true, [&] { return ++polls > 5; }}));
  EXPECT_EQ(checkpoint_steps(dir / "run/checkpoints"), std::vector<int64_t>{4});
  EXPECT_EQ(metrics_of(dir / "run").back().at("type"), "step") << "the epoch is not told yet";
  tiny_train(dir / "run", {}, Open::resume);
  EXPECT_TRUE(checkpoint_content(dir / "run", 16) == checkpoint_content(dir / "whole", 16));
  EXPECT_EQ(metrics_of(dir / "run"), metrics_of(dir / "whole"));
}

TEST(Checkpoint, WhatAModelCarriesIsReadWithinAnEpochAlone) {
  const TempDir dir;
  const std::string text = dir.write("text", tiny_lines(100));
  const auto resumed = [&](const Overrides& overrides) {
    return error_of([&] {
      train(tiny_text_config(text, overrides), {dir / "run", Open::resume, true});
    });
  };
  const int64_t steps_per_epoch = 12;  // 4 columns of 101 positions, in windows of 9
  tiny_text_train(dir / "run", text, {"train.max_steps=3"});
  const std::string within = resumed({"train.precision=bf16", "train.backend=reference"});
  EXPECT_NE(within.find("stopped within an epoch, so it goes on with its own train.batch and "
                        "train.precision: "),
            std::string::npos)
      << within;
  EXPECT_NE(within.find("carry/0"), std::string::npos) << within;
  EXPECT_EQ(resumed({concat("train.max_steps=", steps_per_epoch)}), "no error");
  EXPECT_EQ(resumed({"train.batch=2", "train.epochs=2"}), "no error") << "where an epoch begins";
}

TEST(Checkpoint, WithinAnEpochItGoesOnInStepsOfTheSameNumber) {
  const TempDir dir;
  const std::string text = dir.write("text", tiny_lines(100));
  tiny_text_train(dir / "run", text, {"train.max_steps=3"});
  const auto resumed = [&](const Overrides& overrides) {
    return error_of([&] {
      train(tiny_text_config(text, overrides), {dir / "run", Open::resume, true});
    });
  };
  const std::string refusal = resumed({"data.window=5"});
  EXPECT_NE(refusal.find("the run stopped after 3 of the 12 steps of an epoch, which now has 21; "
                         "resume with the same data, train.batch and, for a text, data.window"),
            std::string::npos)
      << refusal;
  EXPECT_EQ(resumed({"train.max_steps=12"}), "no error");
  EXPECT_EQ(resumed({"data.window=5", "train.max_steps=13"}), "no error") << "an epoch begins";
}

/// An older checkpoint lacks the steps of an epoch. Its position must then fit the run's epoch.
TEST(Checkpoint, TellsHowManyStepsAnEpochHas) {
  CheckpointFacts facts = Position{.in_epoch = 3, .steps_per_epoch = 12, .step = 3}.facts();
  EXPECT_EQ(Position::from(facts).steps_per_epoch, 12);
  facts.erase("steps_per_epoch");
  EXPECT_EQ(Position::from(facts).steps_per_epoch, 0);
  EXPECT_EQ(Position::from(facts).in_epoch, 3);
}

TEST(Checkpoint, AnotherMachinesBitsAreAnnounced) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=4"});
  testing::internal::CaptureStderr();
  train(tiny_config({"train.backend=reference"}), {dir / "run", Open::resume});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("this run has reference, 1 threads"), std::string::npos) << said;
}

/// A limit of `bytes` for the files of this process. A writer sees it like a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(Checkpoint, WithoutRoomTheOldOneStays) {
  const TempDir dir;
  tiny_train(dir / "whole", {"workers=2"});
  tiny_train(dir / "run", {"workers=2", "train.max_steps=4"});
  {
    const FileSizeLimit limit(100'000);  // the weights alone have 300,000 bytes
    const std::string error =
        error_of([&] { tiny_train(dir / "run", {"workers=2"}, Open::resume); });
    EXPECT_NE(error.find(dir / "run/checkpoints/saving.tmp/shared.safetensors"), std::string::npos)
        << error;
    EXPECT_NE(error.find("rank 0"), std::string::npos) << error;
  }
  tiny_train(dir / "run", {"workers=2"}, Open::resume);
  EXPECT_TRUE(checkpoint_content(dir / "run", 16) == checkpoint_content(dir / "whole", 16));
}

}  // namespace
}  // namespace wisp
