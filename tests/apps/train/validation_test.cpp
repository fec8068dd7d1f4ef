// Tests of runs that hold out a validation split: its choice of weights, and its reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/io/checkpoint_directory.h"
#include "data/images/image_source.h"
#include "tests/support/error_of.h"
#include "tests/support/event_reader.h"
#include "tests/support/random_images.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

using Open = RunDirectory::Open;
using nlohmann::json;

/// Images whose white row shows their class. Labels of the test set are one class higher, so a
/// model that learns gets worse in the test.
class Contrary final : public ImageSource {
 public:
  using ImageSource::ImageSource;

 private:
  Shape sample() const override { return {kSide, kSide, 1}; }
  Normalization normalization() const override { return random_normalization(1); }
  int classes() const override { return 10; }
  ImageSet load(Split split) const override {
    const int64_t count = split == Split::train ? 160 : 40;
    ImageSet set = random_images({count, kSide, kSide, 1});
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = i * kSide + set.labels.data<int32_t>()[i];
      std::fill_n(set.images.data<uint8_t>() + row * kSide, kSide, uint8_t{255});
      if (split == Split::test)
        set.labels.data<int32_t>()[i] = (set.labels.data<int32_t>()[i] + 1) % 10;
    }
    return set;
  }

  static constexpr int64_t kSide = 12;
};

const DataRegistration contrary_images("contrary", "test: learning makes the test worse",
                                       [](Config& config) {
                                         return std::make_unique<Contrary>(config);
                                       });

/// A config whose epochs have 4 steps with 32 samples held out, and 5 without.
Config contrary_config(const Overrides& overrides) {
  return Config::from_text(R"(
threads = 1
model = { name = "mlp", hidden = [24] }
data = { name = "contrary", augment = false }
train = { batch = 32, epochs = 6, log_every = 1 }
optimizer = { lr = 0.02, weight_decay = 0.0 }
checkpoint.keep = 0
)",
                           "contrary.toml", overrides);
}

void contrary_train(const std::string& run, const Overrides& overrides) {
  train(contrary_config(overrides), {run, Open::create, true});
}

std::vector<json> rows_of(const std::string& run, const std::string& type) {
  std::vector<json> rows;
  std::ifstream file(run + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    json row = json::parse(line);
    if (row.at("type") == type) rows.push_back(std::move(row));
  }
  return rows;
}

/// The evaluations of a run's checkpoints, one for each epoch.
std::vector<RunEvaluation> evaluations_of(const std::string& run) {
  std::vector<RunEvaluation> all;
  for (const int64_t step : checkpoint_steps(run + "/checkpoints"))
    all.push_back(evaluate_run(run, {}, std::to_string(step)));
  return all;
}

const Overrides kHeldOut = {"data.train_count=160", "data.validation=32"};

TEST(Validation, DecidesWhichCheckpointIsTheBest) {
  const TempDir dir;
  contrary_train(dir / "run", {"data.validation=32"});
  contrary_train(dir / "other", {});
  const std::vector<RunEvaluation> found = evaluations_of(dir / "run");
  ASSERT_EQ(found.size(), 6u);
  EXPECT_GT(found.back().validation->metrics[0], found.front().validation->metrics[0]);
  EXPECT_LT(found.back().test.metrics[0], found.front().test.metrics[0])
      << "the two do not disagree";

  const auto best = std::max_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.validation->metrics[0] < b.validation->metrics[0];
  });
  const RunEvaluation chosen = evaluate_run(dir / "run", {}, "best");
  EXPECT_EQ(chosen.validation->metrics[0], best->validation->metrics[0]);
  EXPECT_EQ(chosen.validation->loss, best->validation->loss);
  EXPECT_LT(chosen.test.metrics[0], found.front().test.metrics[0]);
  EXPECT_EQ(evaluate_run(dir / "other", {}, "best").test.loss,
            evaluations_of(dir / "other").back().test.loss)
      << "nothing decides: the last";
}

TEST(Validation, DecidesWhenTheRateFalls) {
  const TempDir dir;
  const Overrides plateau = {"schedule.kind=plateau", "schedule.patience=0",
                             "schedule.threshold=0"};
  contrary_train(dir / "run", plateau + Overrides{"data.validation=32"});
  EXPECT_EQ(rows_of(dir / "run", "step").back().at("lr"), 0.02)
      << "its loss falls, that of the test set rises";
  EXPECT_NE(
      error_of([&] {
        contrary_train(dir / "other", plateau);
      }).find("schedule.kind is \"plateau\", which needs a validation split; set data.validation"),
      std::string::npos);
}

/// The columns of the epoch rows, and the rates of the first steps of the epochs.
struct Watched {
  std::vector<json> losses;
  std::vector<double> rates;
};
Watched watched_in(const std::string& run) {
  Watched watched;
  for (const json& row : rows_of(run, "epoch")) watched.losses.push_back(row.at("validation_loss"));
  for (const json& row : rows_of(run, "step"))
    if (row.at("step").get<int>() % 4 == 1) watched.rates.push_back(row.at("lr"));
  return watched;
}

TEST(Validation, TheLossThatAPlateauWatchesIsInTheMetrics) {
  const TempDir dir;
  const Overrides run = kHeldOut + Overrides{"schedule.kind=plateau",     "schedule.patience=0",
                                             "schedule.threshold=0.2",    "schedule.factor=0.5",
                                             "schedule.min_factor=0.001", "train.epochs=6"};
  tiny_train(dir / "run", run);
  const Watched watched = watched_in(dir / "run");
  ASSERT_EQ(watched.losses.size(), 6u);
  double best = std::numeric_limits<double>::infinity(), rate = watched.rates.at(0);
  for (size_t epoch = 0; epoch < 6; ++epoch) {
    EXPECT_NEAR(watched.rates.at(epoch), rate, 1e-12) << epoch;
    const double loss = watched.losses[epoch];
    const bool better = loss < best * 0.8;
    better ? best = loss : rate *= 0.5;
  }
  EXPECT_LT(rate, watched.rates[0]) << "or the test shows nothing";
  EXPECT_EQ(watched.losses.back(), evaluate_run(dir / "run", {}).validation->loss);
  EXPECT_EQ(rows_of(dir / "run", "epoch").back().at("test_loss"),
            evaluate_run(dir / "run", {}).test.loss);

  int64_t polls = 0;
  EXPECT_FALSE(
      train(tiny_config(run), {dir / "again", Open::create, true, [&] { return ++polls > 16; }}));
  tiny_train(dir / "again", run, Open::resume);
  EXPECT_EQ(watched_in(dir / "again").losses, watched.losses);
  EXPECT_EQ(watched_in(dir / "again").rates, watched.rates);
}

TEST(Validation, AnEpochWithoutAnEvaluationHasNoLossOfIt) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.epochs=3", "train.eval_every=2"});
  const std::vector<json> rows = rows_of(dir / "run", "epoch");
  EXPECT_TRUE(rows[0].at("test_loss").is_null());
  EXPECT_TRUE(rows[1].at("test_loss").is_number());
  EXPECT_FALSE(rows[2].contains("validation_loss"));
}

TEST(Validation, TheTestSetIsReadAtTheEnd) {
  const TempDir dir;
  testing::internal::CaptureStdout();
  const Config config =
      tiny_config(kHeldOut + Overrides{"workers=2", "train.epochs=3", "train.eval_every=2"});
  const Summary summary = *train(config, {dir / "run"});
  const std::string said = testing::internal::GetCapturedStdout();
  const std::vector<json> rows = rows_of(dir / "run", "epoch");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(rows[0].at("validation_accuracy").is_null()) << "not evaluated in this epoch";
  EXPECT_TRUE(rows[1].at("validation_accuracy").is_number());
  EXPECT_FALSE(rows[0].contains("test_accuracy"));
  EXPECT_FALSE(rows[1].contains("test_accuracy"));
  EXPECT_EQ(rows[2].at("validation_accuracy"), summary.score("validation_accuracy"));
  EXPECT_EQ(rows[2].at("test_accuracy"), summary.score("test_accuracy"));

  const Summary saved = Summary::from_json(dir / "run/summary.json");
  EXPECT_EQ(saved.score("validation_accuracy"), summary.score("validation_accuracy"));
  EXPECT_EQ(saved.score("test_accuracy"), summary.score("test_accuracy"));
  const RunEvaluation evaluation = evaluate_run(dir / "run", {});
  EXPECT_EQ(evaluation.validation->metrics[0], summary.score("validation_accuracy"));
  EXPECT_EQ(evaluation.validation->targets, 32);
  EXPECT_EQ(evaluation.test.metrics[0], summary.score("test_accuracy"));
  EXPECT_EQ(evaluation.test.targets, 40);

  std::map<std::string, std::vector<int64_t>> steps;
  for (const ReadEvent& event : read_events(read_text(dir / "run/events.tfevents.0000000000"))) {
    for (const auto& [tag, value] : event.scalars) steps[tag].push_back(event.step);
  }
  EXPECT_EQ(steps["epoch/validation_accuracy"], (std::vector<int64_t>{8, 12}));
  EXPECT_EQ(steps["epoch/test_accuracy"], (std::vector<int64_t>{12}));
  EXPECT_NE(said.find(", validation accuracy "), std::string::npos) << said;
  EXPECT_EQ(said.find(", test accuracy "), said.rfind(", test accuracy ")) << said;
}

TEST(Validation, NoneChangesNothing) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.epochs=1"});
  tiny_train(dir / "zero", {"train.epochs=1", "data.validation=0"});
  EXPECT_TRUE(checkpoint_content(dir / "run", 4) == checkpoint_content(dir / "zero", 4));
  const CheckpointFacts facts = checkpoint_facts(dir / "run/checkpoints/step_4");
  EXPECT_EQ(facts.count("held_out"), 0u);
  std::vector<std::string> names;
  const json row = rows_of(dir / "run", "epoch").at(0);
  for (const auto& [name, value] : row.items()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"bytes_sent_total", "epoch", "images_per_s", "seconds",
                                             "step", "test_accuracy", "test_loss", "train_accuracy",
                                             "train_loss", "type"}));
}

TEST(Validation, HoldsOutTheSameWhateverTheRunIs) {
  const auto held_out = [](const Overrides& overrides) {
    Prepared run(tiny_config(kHeldOut + overrides));
    run.load();
    EXPECT_EQ(run.examples(Split::train)->count(), 128);
    Loader loader(*run.examples(Split::validation), {.batch = 32, .training = false});
    loader.start_epoch(0);
    const Tensor images = loader.next()->inputs[0];
    return std::string(reinterpret_cast<const char*>(images.raw()),
                       static_cast<size_t>(images.bytes()));
  };
  const std::string usual = held_out({});
  for (const char* other : {"seed=2", "workers=4", "train.batch=8", "train.epochs=9"})
    EXPECT_TRUE(held_out({other}) == usual) << other;
}

TEST(Validation, AnyNumberOfWorkersFindsTheSame) {
  const TempDir dir;
  tiny_train(dir / "run", kHeldOut + Overrides{"train.epochs=2"});
  const Evaluation one = *evaluate_run(dir / "run", {}).validation;
  const Evaluation three = *evaluate_run(dir / "run", Overrides{"workers=3", "train.batch=15"})
                                .validation;  // not full batches
  EXPECT_EQ(three.targets, one.targets);
  EXPECT_EQ(three.metrics[0], one.metrics[0]);
}

TEST(Validation, AStopDuringTheLastEvaluationComesBackToIt) {
  const TempDir dir;
  const Overrides run = kHeldOut + Overrides{"train.epochs=1", "schedule.kind=plateau"};
  tiny_train(dir / "whole", run);
  int64_t polls = 0;
  // the run polls before each of the 4 steps, twice for the batch of the validation split, then
  // before the first batch of the test set
  EXPECT_FALSE(
      train(tiny_config(run), {dir / "run", Open::create, true, [&] { return ++polls > 6; }}));
  EXPECT_EQ(polls, 7);
  EXPECT_TRUE(rows_of(dir / "run", "epoch").empty()) << "the epoch is not told yet";
  tiny_train(dir / "run", run, Open::resume);
  EXPECT_TRUE(checkpoint_content(dir / "run", 4) == checkpoint_content(dir / "whole", 4));
  EXPECT_EQ(Summary::from_json(dir / "run/summary.json").score("validation_accuracy"),
            Summary::from_json(dir / "whole/summary.json").score("validation_accuracy"));
}

TEST(Validation, ARunGoesOnWithItsOwnSplit) {
  const TempDir dir;
  tiny_train(dir / "with", kHeldOut + Overrides{"train.max_steps=4"});
  tiny_train(dir / "without", {"data.train_count=160", "train.max_steps=4"});
  const auto refusal = [&](const std::string& run, const Overrides& overrides) {
    return error_of([&] { tiny_train(dir / run, overrides, Open::resume); });
  };
  EXPECT_NE(refusal("with", {"data.train_count=160"})
                .find("was saved with data.validation = 32, but this run has 0;"),
            std::string::npos);
  EXPECT_NE(
      refusal("without", kHeldOut).find("was saved with data.validation = 0, but this run has 32;"),
      std::string::npos);
  const std::string error =
      error_of([&] { evaluate_run(dir / "without", Overrides{"data.validation=32"}); });
  EXPECT_NE(error.find("samples that the weights were trained on"), std::string::npos) << error;
}

}  // namespace
}  // namespace wisp
