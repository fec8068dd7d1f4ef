// Tests of the trainer's promises for any task, with text, tied weights, carried state and dropout.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "apps/inference/inference.h"
#include "apps/inference/predictions_file.h"
#include "apps/run/checkpoints.h"
#include "apps/survey/data_survey.h"
#include "core/io/checkpoint.h"
#include "tests/support/command.h"
#include "tests/support/error_of.h"
#include "tests/support/onnx_rig.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

/// A text of 16 characters, 4 bits each. Each character is the sum of the two before it.
std::string sums_text(size_t size) {
  std::string text = "ab";
  while (text.size() < size) {
    const int sum = text[text.size() - 1] - 'a' + text[text.size() - 2] - 'a';
    text += static_cast<char>('a' + (sum + (text.size() % 7 == 0)) % 16);
  }
  return text;
}

class Characters : public testing::Test {
 protected:
  Characters() : text_(dir_.write("text", sums_text(2000))) {}

  /// A config for the f64 reference, with 12 columns of 150 characters. An epoch has 9 windows of
  /// 16 positions and one of 5.
  Config config(const Overrides& overrides) const {
    return Config::from_text(R"(
threads = 1
model = { name = "char_rnn", width = 8, dropout = 0.2 }
data = { name = "characters", window = 16 }
train = { batch = 12, epochs = 2, precision = "f64", backend = "reference", log_every = 1 }
optimizer = { lr = 0.5, momentum = 0.9 }
timeout_s = 30.0
)",
                             "characters.toml", overrides + Overrides{"data.path=" + text_});
  }

  TempDir dir_;
  std::string text_;
};

/// Runs `count` steps from `first` on. The loss of step `spoiled` is not finite.
void steps(ReplicaTest& test, int64_t first, int64_t count, int64_t spoiled) {
  for (int64_t step = first; step < first + count; ++step) {
    if (step % test.steps_per_epoch == 0) test.loader.start_epoch(step / test.steps_per_epoch);
    test.replica.step(step, 0.0, [&] {
      Batch batch = *test.loader.next();
      if (step == spoiled) batch.targets.data<int32_t>()[0] = 1000;  // not a class, so NaN
      return batch;
    });
  }
}

std::vector<double> weights_of(Replica& replica) {
  const FlatParameters& parameters = replica.parameters();
  std::vector<double> weights;
  for (const Segment& segment : parameters.segments()) {
    const double* data = parameters.weight().data<double>() + segment.offset;
    weights.insert(weights.end(), data, data + segment.numel);
  }
  return weights;
}

constexpr int64_t kSteps = 25;  // two and a half epochs of 10 windows
constexpr int64_t kSpoiled = 7;

TEST_F(Characters, AreCountedAndMeasuredInWindows) {
  Prepared prepared(config({}));
  prepared.load();
  const SplitSurvey train = survey_data(prepared).splits.at(0);
  EXPECT_EQ(train.samples, 1800) << "tokens";
  EXPECT_EQ(train.work, 1799) << "each but the first is a target; training leaves 11 out";
  EXPECT_EQ(train.steps, 10);
  EXPECT_EQ(train.lengths->least, 6);
  EXPECT_EQ(train.lengths->median, 16);
  EXPECT_EQ(train.lengths->most, 16);
  EXPECT_FALSE(train.inputs.at(0).has_value()) << "no mean of tokens";
}

TEST_F(Characters, AnyNumberOfWorkersLearnsTheSame) {
  const auto learned = [&](const Overrides& cut) {
    std::vector<double> weights;
    TallyValues tally;
    with_replicas(config(cut), [&](ReplicaTest& test) {
      EXPECT_EQ(test.steps_per_epoch, 10);
      steps(test, 0, kSteps, kSpoiled);
      const TallyValues found = test.replica.tally();
      if (test.replica.rank() != 0) return;
      weights = weights_of(test.replica);
      tally = found;
    });
    return std::pair(weights, tally);
  };
  const auto [expected, expected_tally] = learned({});
  for (const Overrides& cut :
       {Overrides{"workers=2"}, Overrides{"workers=4"}, Overrides{"train.accumulate=2"},
        Overrides{"workers=2", "train.accumulate=2"},
        Overrides{"workers=3", "train.accumulate=4"}}) {
    const auto [weights, tally] = learned(cut);
    ASSERT_EQ(weights.size(), expected.size());
    // f64, with sums over columns in another order
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(weights[i], expected[i], 1e-12) << cut.front() << ", weight " << i;
    // the means leave out the spoiled piece, which differs with the cut
    EXPECT_NEAR(tally.mean_loss(), expected_tally.mean_loss(), 0.05);
  }
}

TEST_F(Characters, ARunGoesOnWithAnotherNumberOfWorkers) {
  std::vector<double> expected, resumed;
  with_replicas(config({}), [&](ReplicaTest& test) {
    steps(test, 0, kSteps, kSpoiled);
    expected = weights_of(test.replica);
  });
  const CheckpointOptions options;
  const Position position{.epoch = 1, .in_epoch = 3, .step = 13};
  with_replicas(config({"workers=4"}), [&](ReplicaTest& test) {
    steps(test, 0, 13, kSpoiled);
    Checkpoints(dir_ / "checkpoints", options).save(test.replica, position);
  });
  with_replicas(config({"workers=2", "train.accumulate=3"}), [&](ReplicaTest& test) {
    Checkpoints(dir_ / "checkpoints", options).load(test.replica);
    test.loader.start_epoch(1, 3 * 3);
    steps(test, 13, kSteps - 13, kSpoiled);
    if (test.replica.rank() == 0) resumed = weights_of(test.replica);
  });
  ASSERT_EQ(resumed.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(resumed[i], expected[i], 1e-12) << i;
}

TEST_F(Characters, StateIsCarriedFromWindowToWindowAndNotIntoAnEpoch) {
  const auto losses = [&](const Overrides& overrides) {
    std::vector<double> of_epoch;
    with_replicas(config(overrides + Overrides{"model.dropout=0.0", "optimizer.lr=0.0"}),
                  [&](ReplicaTest& test) {
                    for (int64_t epoch = 0; epoch < 2; ++epoch) {
                      steps(test, epoch * test.steps_per_epoch, test.steps_per_epoch, -1);
                      of_epoch.push_back(test.replica.tally().mean_loss());
                    }
                  });
    EXPECT_EQ(of_epoch[0], of_epoch[1]) << "both begin with nothing";
    return of_epoch[0];
  };
  const double whole = losses({"data.window=150"});  // all positions at once
  EXPECT_NEAR(losses({"data.window=16"}), whole, 1e-12);
  EXPECT_NEAR(losses({"data.window=1"}), whole, 1e-12);
}

std::vector<double> carried_by(Replica& replica) {
  for (const SavedState& saved : replica.state()) {
    if (saved.name == "carry/0")
      return {saved.tensor.data<double>(), saved.tensor.data<double>() + saved.tensor.numel()};
  }
  return {};
}

TEST_F(Characters, ASkippedStepLeavesNoState) {
  with_replicas(config({"train.accumulate=2"}), [&](ReplicaTest& test) {
    steps(test, 0, 3, -1);
    const std::vector<double> before = carried_by(test.replica);
    EXPECT_EQ(before.size(), 12u * 8u);
    steps(test, 3, 1, 3);
    EXPECT_EQ(carried_by(test.replica), before);
    steps(test, 4, 1, -1);
    EXPECT_NE(carried_by(test.replica), before);
  });
}

TEST_F(Characters, ARunIsToldInTheTasksOwnWords) {
  const Overrides f32 = {"train.precision=f32", "train.backend=auto", "workers=2",
                         "compression.method=topk", "compression.ratio=0.1"};
  const Summary summary = *train(config(f32), {dir_ / "run", RunDirectory::Open::create, true});
  EXPECT_LT(summary.score("validation_bits_per_character"), 4.0);
  EXPECT_EQ(summary.work, "characters");
  EXPECT_NE(read_text(dir_ / "run/summary.json").find("\"characters_per_s\""), std::string::npos);
  EXPECT_NE(read_text(dir_ / "run/metrics.jsonl").find("\"test_bits_per_character\""),
            std::string::npos);
  const RunEvaluation evaluation = evaluate_run(dir_ / "run", {});
  EXPECT_EQ(evaluation.test.metrics[0], summary.score("test_bits_per_character"));
  EXPECT_EQ(evaluation.metrics[0].name, "bits_per_character");
}

TEST_F(Characters, AResumedRunHasTheBitsOfOneThatWasNotStopped) {
  const Overrides f32 = {"train.precision=f32", "train.backend=auto", "workers=2"};
  train(config(f32), {dir_ / "whole", RunDirectory::Open::create, true});
  train(config(f32 + Overrides{"train.max_steps=13"}),
        {dir_ / "cut", RunDirectory::Open::create, true});
  train(config(f32), {dir_ / "cut", RunDirectory::Open::resume, true});
  EXPECT_TRUE(checkpoint_content(dir_ / "cut", 20) == checkpoint_content(dir_ / "whole", 20));
}

/// A program that has only the run reads by positions and gets the evaluation's logits.
TEST_F(Characters, ATrainedRunReadsWithoutItsText) {
  const Overrides f32 = {"train.precision=f32", "train.backend=auto", "workers=2", "data.window=3"};
  train(config(f32), {dir_ / "run", RunDirectory::Open::create, true});
  const AskModel predict_all = [&](const Prepared& prepared, Inference& model) {
    write_predictions(dir_ / "predictions", prepared, model);
  };
  const Evaluation evaluation = evaluate_run(dir_ / "run", {}, "last", predict_all).test;
  EXPECT_EQ(evaluation.targets, 99) << "of 100 characters, 8 in a column and 3 left over";
  std::filesystem::remove(text_);

  Inference model(dir_ / "run");
  const int64_t positions = 9, columns = 12, classes = model.facts().classes;
  const Tensor characters({positions, columns}, DType::i32),
      labels({positions * columns}, DType::i32), logits({positions * columns, classes}, DType::f32);
  const CheckpointReader file(dir_ / "predictions");
  // windows of 6 columns, of the first and the second worker in turn
  EXPECT_EQ(file.entry("characters").extents, (std::vector<int64_t>{2 * positions, columns / 2}));
  const Tensor in_file({2 * positions, columns / 2}, DType::i32);
  file.read("characters", in_file);
  file.read("labels", labels);
  file.read("logits", logits);

  double sum = 0.0;
  int64_t row = 0;  // row of the file
  std::vector<Carry> carried(2, model.zeros(columns / 2));
  for (int64_t begin = 0; begin < positions; begin += 3) {
    const int64_t window = std::min<int64_t>(3, positions - begin);
    for (Carry& carry : carried) {
      for (int64_t t = 0; t < window; ++t, ++row) {
        const Step step = model({.inputs = {in_file.rows(row, row + 1)}}, carry);
        carry = step.after;
        EXPECT_FALSE(step.loss.defined());
        const Tensor found = step.output.value();
        ASSERT_EQ(found.shape(), Shape({columns / 2, classes}));
        for (int64_t c = 0; c < columns / 2; ++c) {
          const int64_t target = row * columns / 2 + c;
          const float* expected = logits.data<float>() + target * classes;
          const float* own = found.data<float>() + c * classes;
          double of_all = 0.0;
          for (int64_t k = 0; k < classes; ++k) {
            EXPECT_NEAR(own[k], expected[k], 1e-5);
            of_all += std::exp(double{own[k]});
          }
          const int32_t label = labels.data<int32_t>()[target];
          if (label >= 0) sum += std::log(of_all) - double{own[label]};
        }
      }
    }
  }
  EXPECT_NEAR(sum / 99 / std::log(2.0), evaluation.metrics[0], 1e-5);
  EXPECT_NE(error_of([&] { model({.inputs = {in_file}}); }).find("zeros()"), std::string::npos);
}

TEST_F(Characters, TheExampleGoesOnWithAText) {
  train(config({"train.precision=f32", "train.backend=auto", "train.epochs=1"}),
        {dir_ / "run", RunDirectory::Open::create, true});
  const CommandResult found = run_command(concat(WISP_READ_ON " ", dir_ / "run", " abba 30"));
  EXPECT_EQ(found.status, 0) << found.output;
  EXPECT_EQ(found.output.size(), 4u + 30u + 1u) << found.output;
  EXPECT_TRUE(found.output.starts_with("abba"));
  const CommandResult unknown = run_command(concat(WISP_READ_ON " ", dir_ / "run", " X"));
  EXPECT_EQ(unknown.status, 1);
  EXPECT_EQ(unknown.output, "read_on: X did not occur in what the run has read\n");
}

TEST_F(Characters, AnExportedGraphReadsAWindowPositionByPosition) {
  const Config f32 = config({"train.precision=f32", "train.backend=auto"});
  const Facts facts = Prepared(f32).facts();
  with_replicas(f32, [&](ReplicaTest& test) {
    steps(test, 0, 5, -1);
    Replica& replica = test.replica;
    Context& context = replica.context();
    const OnnxFile file(onnx_model(context, replica.model(), replica.parameters(), facts));
    EXPECT_EQ(file.ends(OnnxFile::kInput),
              (std::vector<std::string>{"characters 6 1 batch", "state_0 1 batch 8"}));
    EXPECT_EQ(file.ends(OnnxFile::kOutput),
              (std::vector<std::string>{"logits 1 batch 16", "state_0_after 1 batch 8"}));

    context.training = context.recording = false;
    const Batch batch = *test.loader.next();
    const Carry before{random_tensor({12, 8}, 1, DType::f32)};
    const Step step = replica.model().forward(context, batch, before);
    OnnxArray state = OnnxArray::of(before[0]);
    for (int64_t t = 0; t < 16; ++t) {
      const Tensor characters = batch.inputs[0].rows(t, t + 1);
      const OnnxArrays found =
          evaluate(file, {{"characters", OnnxArray::of(characters)}, {"state_0", state}});
      const Tensor logits = step.output.value().rows(t * 12, (t + 1) * 12);
      expect_near(found.at("logits"), OnnxArray::of(logits), concat("position ", t));
      state = found.at("state_0_after");
    }
    expect_near(state, OnnxArray::of(step.after[0]), "state");
  });
}

TEST_F(Characters, RefusesATextThatIsTooShort) {
  dir_.write("text", "abcabcabc");
  EXPECT_EQ(error_of([&] { Prepared(config({})).load(); }),
            "characters train: 8 tokens for 12 columns (train.batch), expected at least 13");
  std::filesystem::remove(text_);
  EXPECT_EQ(error_of([&] { Prepared(config({})); }),
            "characters: " + text_ + " (data.path): there is no such file");
}

}  // namespace
}  // namespace wisp
