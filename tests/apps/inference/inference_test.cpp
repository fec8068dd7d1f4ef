#include "apps/inference/inference.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "apps/inference/predictions_file.h"
#include "apps/interchange/exchange.h"
#include "core/base/omp_threads.h"
#include "core/io/checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

/// A run of 2 epochs whose batch norms have running statistics.
Config small_config(const Overrides& overrides) {
  return tiny_config_of("model.name = \"resnet_cifar\"\nmodel.depth = 8",
                        Overrides{"train.epochs=2", "data.side=8"} + overrides);
}

/// The mean loss of the predictions in a file.
double loss_of(const std::string& path, int64_t count) {
  const CheckpointReader file(path);
  const Tensor labels({count}, DType::i32), logits({count, 10}, DType::f32);
  file.read("labels", labels);
  file.read("logits", logits);
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    const float* row = logits.data<float>() + 10 * i;
    double of_all = 0.0;
    for (int c = 0; c < 10; ++c) of_all += std::exp(double{row[c]});
    sum += std::log(of_all) - double{row[labels.data<int32_t>()[i]]};
  }
  return sum / static_cast<double>(count);
}

/// Whatever weights a run keeps, Inference takes those that an evaluation takes.
TEST(Inference, HasTheWeightsAndStatisticsOfEvaluation) {
  const std::vector<Overrides> runs = {
      {"workers=2"},
      {"workers=2", "ema.decay=0.9"},
      {"workers=4", "compression.method=dpsgd", "gossip.graph=ring"},
      {"workers=2", "compression.method=local_sgd", "local_sgd.period=3", "ema.decay=0.8"},
      {"workers=2", "train.freeze=[\"stage1.*\"]"}};
  for (const Overrides& run : runs) {
    const TempDir dir;
    train(small_config(run), {dir / "run", RunDirectory::Open::create, true});
    const AskModel predict_all = [&](const Prepared& prepared, Inference& model) {
      write_predictions(dir / "predictions", prepared, model);
    };
    const Evaluation found = evaluate_run(dir / "run", {}, "last", predict_all).test;
    // losses are f32 in the evaluation, f64 in loss_of()
    EXPECT_NEAR(loss_of(dir / "predictions", 40), found.loss, 2e-6) << run.back();
  }
}

TEST(Inference, HoldsTheWeightsAloneAndAnswersAnyNumberOfSamples) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.epochs=1"});
  Inference model(dir / "run");
  EXPECT_EQ(model.parameters().grad().numel(), 0);
  EXPECT_EQ(model.facts().classes, 10);
  EXPECT_EQ(model.model().metrics().front().name, "accuracy");
  for (const int64_t count : {1, 7, 40}) {
    const Tensor images({count, 32, 32, 3}, DType::f32);
    images.clear();
    const Step step = model({.inputs = {images}, .count = count});
    EXPECT_EQ(step.output.shape(), Shape({count, 10}));
    EXPECT_FALSE(step.loss.defined());
    EXPECT_FLOAT_EQ(step.output.value().data<float>()[0],
                    step.output.value().data<float>()[10 * (count - 1)]);
  }
}

/// A region's team has one thread within another region. The library's barriers would wait for
/// more.
TEST(Inference, AnswersWithinAParallelRegion) {
  const TempDir dir;
  train(small_config({"train.epochs=1"}), {dir / "run", RunDirectory::Open::create, true});
  const std::vector<std::string> threads{"threads=0"};
  Inference model(dir / "run", threads);
  const Tensor images({8, 8, 8, 3}, DType::f32);
  for (int64_t i = 0; i < images.numel(); ++i)
    images.data<float>()[i] = std::sin(static_cast<float>(i));
  const auto answer = [&](Inference& asked) {
    const Tensor output = asked({.inputs = {images}, .count = 8}).output.value();
    return std::vector(output.data<float>(), output.data<float>() + output.numel());
  };
  const std::vector<float> expected = answer(model);
  std::array<std::vector<float>, 3> found;
#pragma omp parallel num_threads(2)
  {
#pragma omp master
    {
      const OmpThreads two(2);
      found[0] = answer(model);
      const std::vector<std::string> twice{"threads=2"};
      Inference within(dir / "run", twice);
      found[1] = answer(within);
      if (omp_in_parallel()) {
        EXPECT_EQ(within.notices(),
                  std::vector<std::string>{
                      "threads is 2, but OpenMP grants 1 here, which compute the same"});
      }
    }
  }
  found[2] = answer(model);
  for (const std::vector<float>& each : found) EXPECT_EQ(each, expected);
}

TEST(Inference, IsOnTheCpuWhereverTheRunWas) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.epochs=1"});
  std::string config = read_text(dir / "run/config.toml");
  const std::string cpu = "device = \"cpu\"";
  ASSERT_NE(config.find(cpu), std::string::npos) << config;
  dir.write("run/config.toml", config.replace(config.find(cpu), cpu.size(), "device = \"cuda\""));
  EXPECT_EQ(Inference(dir / "run").facts().classes, 10);
}

TEST(Inference, OverridesAreThoseOfTheRun) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.epochs=1"});
  const Overrides typo = {"train.precison=f32"}, reference = {"train.backend=reference"};
  EXPECT_EQ(
      error_of([&] { Inference(dir / "run", typo); }),
      concat("unknown key 'train.precison': ", dir / "run", "/config.toml has none of that name"));
  Inference other(dir / "run", reference);
  EXPECT_EQ(other.context().backend.name(), "reference");
}

TEST(Inference, WhatIsNoRunIsRefused) {
  const TempDir dir;
  EXPECT_NE(error_of([&] { Inference(dir / "nothing"); }).find("holds no run"), std::string::npos);
  tiny_train(dir / "run", {"train.epochs=1"});
  EXPECT_NE(error_of([&] { Inference(dir / "run", {}, "17"); }).find("no checkpoint of step 17"),
            std::string::npos);
  fs::remove(dir / "run/facts.json");
  EXPECT_NE(error_of([&] { Inference(dir / "run"); }).find("has no facts.json"), std::string::npos);
}

TEST(Inference, InputsThatAreNotTheModelsAreRefused) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.epochs=1"});
  Inference model(dir / "run");
  EXPECT_EQ(error_of([&] { model({}); }), "inference: 0 inputs, expected 1");
  EXPECT_EQ(error_of([&] {
              model({.inputs = {Tensor({1, 32, 32, 3}, DType::u8)}});
            }),
            "inference: input is u8, expected f32");
  EXPECT_EQ(error_of([&] {
              model({.inputs = {Tensor({1, 16, 16, 3}, DType::f32)}});
            }),
            "inference: input is (1, 16, 16, 3), expected a batch of (32, 32, 3)");
  const Tensor image({1, 32, 32, 3}, DType::f32);
  EXPECT_NE(error_of([&] {
              model({.inputs = {image}}, {image});
            }).find("a state of 1 tensors, but the model carries 0"),
            std::string::npos);
}

TEST(Inference, RefusesTokensThatTheVocabularyDoesNotHave) {
  const TempDir dir;
  tiny_text_train(dir / "run", dir.write("text", tiny_lines(100)), {"train.max_steps=1"});
  Inference model(dir / "run");
  const Tensor tokens({2, 1}, DType::i32);
  const auto refusal = [&](int32_t token) {
    tokens.data<int32_t>()[1] = token;
    return error_of([&] { model({.inputs = {tokens}}, model.zeros(1)); });
  };
  EXPECT_EQ(model.facts().inputs[0].ids, 9);
  EXPECT_EQ(refusal(8), "no error");
  EXPECT_EQ(refusal(9), "inference: tokens: number 1 is 9, expected 0 to 8");
  EXPECT_EQ(refusal(-1), "inference: tokens: number 1 is -1, expected 0 to 8");
}

/// A run imported from a weight file answers like a trained run.
TEST(Inference, AnImportedRunSaysWhatItReads) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.epochs=1"});
  export_run(dir / "run", dir / "weights.safetensors", {});
  import_run(tiny_config(), dir / "weights.safetensors", dir / "imported",
             RunDirectory::Open::create);
  Inference trained(dir / "run"), imported(dir / "imported");
  EXPECT_EQ(trained.facts(), imported.facts());
  const Tensor images({3, 32, 32, 3}, DType::f32);
  images.clear();
  const Tensor a = trained({.inputs = {images}}).output.value(),
               b = imported({.inputs = {images}}).output.value();
  for (int64_t i = 0; i < a.numel(); ++i) EXPECT_EQ(a.data<float>()[i], b.data<float>()[i]);
}

}  // namespace
}  // namespace wisp
