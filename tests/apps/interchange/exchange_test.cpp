#include "apps/interchange/exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/io/checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/sealed_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensors.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

using Open = RunDirectory::Open;

const Overrides kTwo = {"workers=2"};

TEST(Exchange, AnImportedFileIsExportedBitForBit) {
  const TempDir dir;
  const Config resnet =
      tiny_config_of("model.name = \"resnet_cifar\"\nmodel.depth = 8",
                     {"workers=2", "data.train_count=64", "data.side=8", "train.max_steps=2"});
  train(resnet, {dir / "run", Open::create, true});
  export_run(dir / "run", dir / "a.safetensors", {});
  import_run(resnet, dir / "a.safetensors", dir / "again", Open::create);
  export_run(dir / "again", dir / "b.safetensors", {});
  EXPECT_EQ(read_text(dir / "a.safetensors"), read_text(dir / "b.safetensors"));
  EXPECT_EQ(evaluate_run(dir / "again", {}).test.loss, evaluate_run(dir / "run", {}).test.loss);
}

TEST(Exchange, AveragesStartFromTheImportedWeights) {
  const TempDir dir;
  tiny_train(dir / "run", {"seed=2", "train.max_steps=8"});
  export_run(dir / "run", dir / "a.safetensors", {});
  import_run(tiny_config({"ema.decay=0.9"}), dir / "a.safetensors", dir / "again", Open::create);
  EXPECT_EQ(evaluate_run(dir / "again", {}).test.loss, evaluate_run(dir / "run", {}).test.loss);
}

TEST(Exchange, TrainingGoesOnFromAnImportedFileAsFromAnInitialOne) {
  const TempDir dir;
  tiny_train(dir / "run", {"seed=2", "train.max_steps=2"});
  export_run(dir / "run", dir / "a.safetensors", {});
  import_run(tiny_config(kTwo), dir / "a.safetensors", dir / "imported", Open::create);
  EXPECT_EQ(tiny_train(dir / "imported", kTwo, Open::resume).steps, 16);
  tiny_train(dir / "started", kTwo + Overrides{"model.init=" + (dir / "a.safetensors")});
  tiny_train(dir / "drawn", kTwo);
  export_run(dir / "imported", dir / "imported.safetensors", {});
  export_run(dir / "started", dir / "started.safetensors", {});
  export_run(dir / "drawn", dir / "drawn.safetensors", {});
  EXPECT_EQ(read_text(dir / "imported.safetensors"), read_text(dir / "started.safetensors"));
  EXPECT_NE(read_text(dir / "drawn.safetensors"), read_text(dir / "started.safetensors"));
}

TEST(Exchange, FilesThatDoNotFitLeaveTheOldRunAlone) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=1"});
  const std::string config = read_text(dir / "run/config.toml");
  CheckpointWriter writer;
  writer.add("layer0.weight", Tensor({24, 3072}, DType::f32));
  writer.add("layer0.bias", Tensor({24}, DType::f32));
  writer.add("layer1.weight", Tensor({7, 24}, DType::f32));
  writer.add("layer1.bias", Tensor({7}, DType::f32));
  writer.write(dir / "a");
  EXPECT_EQ(error_of([&] { import_run(tiny_config(), dir / "a", dir / "run", Open::overwrite); }),
            dir /
                "a has another number of classes than the model's 10 (tensor layer1.bias), "
                "so it cannot be imported; to train from its other layers, set it as model.init");
  dir.write("b", "no weights");
  for (const char* file : {"b", "none"}) {
    EXPECT_NE(error_of([&] {
                import_run(tiny_config(), dir / file, dir / "run", Open::overwrite);
              }).find(dir / file),
              std::string::npos);
    EXPECT_NE(error_of([&] {
                tiny_train(dir / "run", {"model.init=" + (dir / file)}, Open::overwrite);
              }).find(dir / file),
              std::string::npos);
  }
  EXPECT_NE(error_of([&] {
              import_run(tiny_config(), dir / "a", dir / "run", Open::create);
            }).find("holds a run already"),
            std::string::npos);
  EXPECT_EQ(read_text(dir / "run/config.toml"), config);
}

TEST(Exchange, FineTuningStartsFromAFileOfOtherClasses) {
  const TempDir dir;
  CheckpointWriter writer;
  writer.add("layer0.weight", full({24, 3072}, 0.001, DType::f32));
  writer.add("layer0.bias", Tensor({24}, DType::f32));
  writer.add("layer1.weight", Tensor({7, 24}, DType::f32));
  writer.add("layer1.bias", Tensor({7}, DType::f32));
  writer.write(dir / "a");
  tiny_train(dir / "run", {"model.init=" + (dir / "a"), "train.max_steps=1", "optimizer.lr=0.0"});
  export_run(dir / "run", dir / "b.safetensors", {});
  const CheckpointReader file(dir / "b.safetensors");
  const Tensor first({24, 3072}, DType::f32), last({10, 24}, DType::f32);
  file.read("layer0.weight", first);
  file.read("layer1.weight", last);
  EXPECT_EQ(values(first), values(full({24, 3072}, 0.001, DType::f32)));
  EXPECT_NE(values(last), values(Tensor({10, 24}, DType::f32))) << "as drawn";
}

/// For example, weights with ImageNet's 1,000 classes fit a data set of ten classes.
TEST(Exchange, AModelMayHaveMoreClassesThanTheDataSet) {
  const TempDir dir;
  const Overrides twelve = {"model.classes=12", "train.max_steps=1"};
  tiny_train(dir / "run", twelve);
  export_run(dir / "run", dir / "a.safetensors", {});
  EXPECT_EQ(CheckpointReader(dir / "a.safetensors").entry("layer1.bias").extents[0], 12);
  import_run(tiny_config(twelve), dir / "a.safetensors", dir / "imported", Open::create);
  EXPECT_EQ(evaluate_run(dir / "imported", {}).test.metrics[0],
            evaluate_run(dir / "run", {}).test.metrics[0]);
  EXPECT_NE(error_of([&] {
              tiny_train(dir / "few", {"model.classes=9"});
            }).find("model.classes is 9, but the data set has 10 classes"),
            std::string::npos);
}

TEST(Exchange, WhatCannotBeExportedIsSaid) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=1"});
  EXPECT_EQ(error_of([&] { export_run(dir / "run", dir / "a.pt", {}); }),
            dir / "a.pt: expected a name that ends in .safetensors or .onnx");
  EXPECT_NE(error_of([&] { export_run(dir / "none", dir / "a.onnx", {}); }).find("holds no run"),
            std::string::npos);
  std::filesystem::remove_all(dir / "run/checkpoints");
  EXPECT_NE(
      error_of([&] { export_run(dir / "run", dir / "a.onnx", {}); }).find("there is no checkpoint"),
      std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(dir / "a.onnx"));
}

TEST(Exchange, AFileWithANaNMakesNoRun) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=1"});
  export_run(dir / "run", dir / "a.safetensors", {});
  const std::map<std::string, Tensor> tensors = tensors_in(dir / "a.safetensors");
  tensors.at("layer0.bias").data<float>()[2] = std::nanf("");
  write_tensors(dir / "b", tensors);
  const std::string said = dir / "b: layer0.bias: 1 of 24 values is not finite";
  EXPECT_EQ(error_of([&] { import_run(tiny_config(), dir / "b", dir / "new", Open::create); }),
            said);
  EXPECT_EQ(error_of([&] { tiny_train(dir / "new", {"model.init=" + (dir / "b")}); }), said);
  EXPECT_FALSE(std::filesystem::exists(dir / "new"));
}

}  // namespace
}  // namespace wisp
