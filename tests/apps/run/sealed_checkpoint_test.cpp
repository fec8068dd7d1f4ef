// Tests of checkpoints that a stranger made: right checksums, and values that no run saves.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "apps/inference/inference.h"
#include "apps/interchange/exchange.h"
#include "apps/run/checkpoints.h"
#include "tests/support/error_of.h"
#include "tests/support/sealed_files.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

using Open = RunDirectory::Open;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A run that stopped after 6 steps, in its second epoch of 4, and copies of it with one change.
class SealedCheckpoint : public testing::Test {
 protected:
  void train(const Overrides& overrides) {
    overrides_ = overrides;
    tiny_train(dir_ / "whole", overrides + Overrides{"train.max_steps=6"});
  }
  /// Makes "run" a fresh copy, and returns its checkpoint.
  std::string copy() {
    std::filesystem::remove_all(dir_ / "run");
    std::filesystem::copy(dir_ / "whole", dir_ / "run", std::filesystem::copy_options::recursive);
    return dir_ / "run/checkpoints/step_6";
  }
  std::string resumed(const Overrides& more = {}) {
    return error_of([&] {
      tiny_train(dir_ / "run", overrides_ + Overrides{"train.max_steps=8"} + more, Open::resume);
    });
  }
  std::string resumed_aloud() {
    testing::internal::CaptureStderr();
    wisp::train(tiny_config(overrides_ + Overrides{"train.max_steps=8"}),
                {dir_ / "run", Open::resume});
    return testing::internal::GetCapturedStderr();
  }
  /// What resuming says after a change of one element of a state.
  template <class T>
  std::string with(const std::string& state, int64_t element, T value) {
    const std::string checkpoint = copy();
    const int files = change_tensor(
        checkpoint, state, [&](const Tensor& tensor) { tensor.data<T>()[element] = value; });
    EXPECT_GT(files, 0) << state;
    return resumed();
  }

  const TempDir dir_;
  Overrides overrides_;
};

TEST_F(SealedCheckpoint, OfNoWorkersIsRefusedByEveryCommand) {
  train({"workers=2"});
  // with several workers "rank 0: " stands before it
  const auto ends_with = [](const std::string& said, const std::string& refusal) {
    EXPECT_TRUE(said.ends_with(refusal)) << said << "\n" << refusal;
  };
  for (const char* workers : {"0", "-1", "-2147483648", "1048577", "2147483647"}) {
    change_fact(copy(), "workers", workers);
    const std::string refusal =
        concat("the checkpoint's manifest says workers = ", workers, ", expected 1 to 1048576");
    ends_with(error_of([&] { evaluate_run(dir_ / "run", {}); }), refusal);
    ends_with(error_of([&] { export_run(dir_ / "run", dir_ / "a.safetensors", {}); }), refusal);
    ends_with(error_of([&] { export_run(dir_ / "run", dir_ / "a.onnx", {}, "6"); }), refusal);
    ends_with(error_of([&] { Inference(dir_ / "run", {}); }), refusal);
    ends_with(resumed(), refusal);
    ends_with(resumed({"workers=4"}), refusal);
  }
  for (const char* workers : {"", "2.0", "two", "4294967298", "0x2", "nan", " 2"}) {
    change_fact(copy(), "workers", workers);
    const std::string refusal =
        concat("the checkpoint's manifest says workers = '", workers, "', expected a number");
    ends_with(error_of([&] { evaluate_run(dir_ / "run", {}); }), refusal);
    ends_with(resumed(), refusal);
  }
  change_fact(copy(), "workers", "3");
  for (const std::string& said :
       {error_of([&] { evaluate_run(dir_ / "run", {}); }), resumed(), resumed({"workers=1"})})
    EXPECT_NE(said.find("rank_2.safetensors: there is no such file"), std::string::npos) << said;
}

TEST_F(SealedCheckpoint, WithAPositionThatNoRunReachesIsRefused) {
  train({});
  struct Case {
    const char* fact;
    const char* value;
    const char* expected;
  };
  for (const auto& [fact, value, expected] :
       {Case{"epoch", "-1", "0 or more"}, Case{"epoch", "9223372036854775807", "0 or more"},
        Case{"step", "-6", "0 or more"}, Case{"steps_per_epoch", "-4", "0 or more"},
        Case{"in_epoch", "-1", "0 to 4"}, Case{"in_epoch", "5", "0 to 4"},
        Case{"in_epoch", "9223372036854775807", "0 to 4"}, Case{"skipped", "-1", "0 to 6"},
        Case{"skipped", "7", "0 to 6"}, Case{"best_step", "-2", "-1 to 6"},
        Case{"best_step", "7", "-1 to 6"}}) {
    change_fact(copy(), fact, value);
    EXPECT_EQ(resumed(), concat("the checkpoint's manifest says ", fact, " = ", value,
                                ", expected ", expected));
  }
  change_fact(copy(), "steps_per_epoch", "0");  // an old checkpoint says nothing
  EXPECT_EQ(resumed(), "no error");
  change_fact(copy(), "step", "5");
  EXPECT_EQ(resumed(),
            dir_ / "run/checkpoints/step_6: its manifest says step = 5; was it renamed?");
  for (const char* sums : {"1 -2 3 4", "1 nan 3 4", "1 1e300 3 4", "1 2 3 inf", "1 2 3"}) {
    change_fact(copy(), "tally", sums);
    EXPECT_EQ(resumed().find("the checkpoint's manifest: tally: "), 0u) << sums;
  }
}

TEST_F(SealedCheckpoint, WithCountersThatNoRunHasIsRefused) {
  train({"workers=2", "compression.method=dgc", "compression.ratio=0.05", "data.train_count=168",
         "data.validation=40", "schedule.kind=plateau"});
  const std::string shared = dir_ / "run/checkpoints/step_6/shared.safetensors: ";
  for (const int64_t value : {int64_t{-1}, INT64_MAX, INT64_MIN}) {
    const std::string refusal = concat(": element 0 is ", value, ", expected 0 to 2^60");
    for (const char* state : {"applied", "engaged", "skipped_in_a_row"})
      EXPECT_NE(with(state, 0, value).find(concat(shared, state, refusal)), std::string::npos);
    EXPECT_NE(with("traffic", 0, value).find("safetensors: traffic" + refusal), std::string::npos);
  }
  EXPECT_NE(with("last_lr", 0, -1.0).find(shared + "last_lr: element 0 is -1, expected 0 or more"),
            std::string::npos);
  EXPECT_NE(with("last_lr", 0, std::nan("")), "no error");
  EXPECT_NE(with("schedule", 0, -1.0).find(shared + "schedule: the factor is -1, expected 0 to 1"),
            std::string::npos);
  EXPECT_NE(with("schedule", 2, std::nan("")), "no error");
  for (const double value : {-1.0, 1e300, kInfinity, std::nan("")})
    EXPECT_NE(with("tally", 1, value).find("safetensors: tally: divisor 0 is "), std::string::npos);
  for (const float value : {std::nanf(""), 1e38f, -std::numeric_limits<float>::infinity()}) {
    for (const char* state : {"residual/layer0.weight", "momentum/layer0.weight"})
      EXPECT_NE(with(state, 5, value).find(concat("safetensors: ", state, ": element 5 is ")),
                std::string::npos);
  }
}

TEST_F(SealedCheckpoint, AnotherNumberOfWorkersChecksEachFile) {
  train({"workers=2", "compression.method=topk", "compression.ratio=0.05"});
  const auto with_two = [&](const std::string& state, const auto& change) {
    change_tensor(copy(), state, change);
    return resumed({"workers=4"});
  };
  EXPECT_NE(with_two("residual/layer0.weight",
                     [](const Tensor& x) { x.data<float>()[7] = std::nanf(""); })
                .find("residual/layer0.weight: element 7 is "),
            std::string::npos);
  EXPECT_NE(with_two("traffic", [](const Tensor& x) { x.data<int64_t>()[2] = INT64_MAX; })
                .find("traffic: element 2 is "),
            std::string::npos);
}

TEST_F(SealedCheckpoint, OfOktopkHasCutsThatAscend) {
  train({"workers=2", "compression.method=oktopk", "compression.ratio=0.05",
         "compression.start_after=1"});
  const std::string unit = "unit/layer1.weight/";
  EXPECT_EQ(with<int64_t>("applied", 0, 5), "no error") << "a value that a run may have";
  for (const int64_t cut : {int64_t{-1}, int64_t{1'000'000}, INT64_MAX, INT64_MIN}) {
    for (const int64_t word : {0, 7, 14})
      EXPECT_NE(with(unit + "cuts", word, cut).find(unit + "cuts: cut "), std::string::npos)
          << word << " " << cut;
  }
  for (const char* state : {"local_threshold", "threshold"}) {
    for (const float value : {-1.0f, std::nanf("")})
      EXPECT_NE(with(unit + state, 0, value).find(unit + state + ": element 0 is "),
                std::string::npos)
          << value;
  }
}

TEST_F(SealedCheckpoint, OfGossipHasCounts) {
  train({"workers=2", "compression.method=choco", "gossip.code=topk", "compression.ratio=0.05"});
  for (const char* state : {"applied", "told"})
    EXPECT_NE(with(state, 0, int64_t{-3}).find(concat(state, ": element 0 is -3")),
              std::string::npos);
}

TEST_F(SealedCheckpoint, OfAdamWHasCounts) {
  train({"optimizer.kind=adamw", "optimizer.lr=0.001"});
  EXPECT_NE(with("second_moment_number", 1, int64_t{-1}).find("second_moment_number: element 1"),
            std::string::npos);
}

TEST_F(SealedCheckpoint, WithWeightsThatAreNotFiniteIsNamed) {
  train({});
  const std::string checkpoint = copy();
  change_tensor(checkpoint, "weight/layer1.weight", [](const Tensor& weight) {
    weight.data<float>()[0] = std::nanf("");
    weight.data<float>()[9] = -std::numeric_limits<float>::infinity();
  });
  const std::string notice = checkpoint +
                             ": has the model diverged?\n  weight/layer1.weight: 2 of 240 values "
                             "are not finite";
  const std::vector<std::string> notices = {notice};
  EXPECT_EQ(evaluate_run(dir_ / "run", {}).notices, notices);
  EXPECT_EQ(export_run(dir_ / "run", dir_ / "a.safetensors", {}), notices);
  EXPECT_EQ(Inference(dir_ / "run").notices(), notices);
  const std::string said = resumed_aloud();
  EXPECT_NE(said.find("weight/layer1.weight: 2 of 240 values are not finite"), std::string::npos)
      << said;
}

TEST_F(SealedCheckpoint, WithAveragesThatAreNotFiniteIsNamed) {
  train({"ema.decay=0.9"});
  change_tensor(copy(), "ema/layer0.bias",
                [](const Tensor& bias) { bias.data<float>()[3] = std::nanf(""); });
  const std::vector<std::string> notices = evaluate_run(dir_ / "run", {}).notices;
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("ema/layer0.bias: 1 of 24 values is not finite"), std::string::npos);
}

TEST_F(SealedCheckpoint, WithANegativeVarianceIsNamed) {
  const Config resnet = tiny_config_of("model.name = \"resnet_cifar\"\nmodel.depth = 8",
                                       {"data.train_count=64", "data.side=8", "train.max_steps=2"});
  wisp::train(resnet, {dir_ / "run", Open::create, true});
  int changed = 0;
  std::string name;
  const std::string checkpoint = dir_ / "run/checkpoints/step_2";
  for (const auto& [tensor, value] : tensors_in(checkpoint + "/rank_0.safetensors"))
    if (tensor.ends_with("running_var")) name = tensor;
  changed = change_tensor(checkpoint, name, [](const Tensor& x) { x.data<float>()[1] = -1.0f; });
  ASSERT_EQ(changed, 1);
  const std::vector<std::string> notices = evaluate_run(dir_ / "run", {}).notices;
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find(name + ": 1 of "), std::string::npos) << notices[0];
  EXPECT_NE(notices[0].find("negative"), std::string::npos) << notices[0];
}

}  // namespace
}  // namespace wisp
