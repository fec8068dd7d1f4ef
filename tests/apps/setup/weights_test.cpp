#include "apps/setup/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/io/checkpoint.h"
#include "core/tensor/channel_order.h"
#include "layers/linear.h"
#include "tests/support/error_of.h"
#include "tests/support/sealed_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensors.h"
#include "tests/support/tiny_run.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

const Overrides kOther = {"seed=2"};  // other weights

Config small_resnet(const Overrides& overrides = {}) {
  return tiny_config_of("model.name = \"resnet_cifar\"\nmodel.depth = 8",
                        Overrides{"data.train_count=32", "data.side=8"} + overrides);
}

/// The values of every parameter and buffer of a replica, by name.
std::map<std::string, std::vector<double>> content(Replica& replica) {
  std::map<std::string, std::vector<double>> all;
  for (const Segment& segment : replica.parameters().segments())
    all[segment.name] = values(FlatParameters::view(replica.parameters().weight(), segment));
  for (const Buffer* buffer : replica.parameters().buffers())
    all[buffer->name] = values(buffer->value);
  return all;
}

void write(const std::string& path, const Config& config) {
  with_replicas(config, [&](ReplicaTest& test) {
    test.steps(0, 1);  // moves the running statistics
    write_weights(path, test.replica.model(), test.replica.parameters(), {});
  });
}

/// The values of a fresh replica after it has read the file.
std::map<std::string, std::vector<double>> read(const std::string& path, const Config& config) {
  std::map<std::string, std::vector<double>> found;
  const Facts ends = Prepared(config).facts();
  with_replicas(config, [&](ReplicaTest& test) {
    read_weights(test.replica.context().stream, path, test.replica.model(),
                 test.replica.parameters(), ends);
    found = content(test.replica);
  });
  return found;
}

TEST(Weights, ComeBackBitForBit) {
  const TempDir dir;
  std::map<std::string, std::vector<double>> before;
  with_replicas(small_resnet(), [&](ReplicaTest& test) {
    test.steps(0, 1);
    before = content(test.replica);
    write_weights(dir / "a", test.replica.model(), test.replica.parameters(), {});
  });
  EXPECT_EQ(read(dir / "a", small_resnet(kOther)), before);
}

TEST(Weights, FileHasPyTorchsNamesAndLayouts) {
  const TempDir dir;
  Tensor conv;
  with_replicas(small_resnet(), [&](ReplicaTest& test) {
    write_weights(dir / "a", test.replica.model(), test.replica.parameters(), {});
    const FlatParameters& parameters = test.replica.parameters();
    conv = channels_first(FlatParameters::view(parameters.weight(), parameters.segments().back()));
  });
  const CheckpointReader file(dir / "a");
  EXPECT_EQ(file.entry("conv1.weight").str(), "F32 [16,3,3,3]");
  EXPECT_EQ(file.entry("layer2.0.conv1.weight").str(), "F32 [32,16,3,3]");
  EXPECT_EQ(file.entry("layer2.0.bn1.running_var").str(), "F32 [32]");
  EXPECT_EQ(file.entry("fc.weight").str(), "F32 [10,64]");
  EXPECT_EQ(file.metadata("format"), "pt");
  const Tensor found(conv.shape(), DType::f32), tracked({}, DType::i64);
  file.read("conv1.weight", found);
  EXPECT_EQ(values(found), values(conv));
  file.read("layer2.0.bn1.num_batches_tracked", tracked);
  EXPECT_EQ(tracked.data<int64_t>()[0], 0);
}

/// Copies a file of weights with some tensors changed; an undefined one is left out.
void copy_with(const std::string& from, const std::string& to,
               const std::map<std::string, Tensor>& changes) {
  const CheckpointReader file(from);
  CheckpointWriter writer;
  for (const auto& [name, tensor] : changes) {
    if (tensor.defined()) writer.add(name, tensor);
  }
  for (const std::string& name : file.names()) {
    if (changes.count(name)) continue;
    const std::vector<int64_t>& e = file.entry(name).extents;
    const Tensor tensor(e.size() == 2 ? Shape{e[0], e[1]} : Shape{e[0]}, DType::f32);
    file.read(name, tensor);
    writer.add(name, tensor);
  }
  writer.write(to);
}

TEST(Weights, OtherFloatsAreConverted) {
  const TempDir dir;
  write(dir / "a", tiny_config());
  const Tensor half({24}, DType::f16), brain({10}, DType::bf16);
  for (int i = 0; i < 24; ++i) half.data<Half>()[i] = Half(0.25f * static_cast<float>(i - 12));
  for (int i = 0; i < 10; ++i) brain.data<BFloat16>()[i] = BFloat16(static_cast<float>(i) + 0.5f);
  const Tensor wide = random_tensor({10, 24}, 1, DType::f64);
  copy_with(dir / "a", dir / "b",
            {{"layer0.bias", half}, {"layer1.bias", brain}, {"layer1.weight", wide}});
  auto found = read(dir / "b", tiny_config());
  EXPECT_EQ(found["layer0.bias"][0], -3.0);
  EXPECT_EQ(found["layer0.bias"][23], 2.75);
  EXPECT_EQ(found["layer1.bias"][9], 9.5);
  EXPECT_EQ(found["layer1.weight"][7], static_cast<double>(static_cast<float>(values(wide)[7])));
  EXPECT_EQ(read(dir / "b", tiny_config({"train.precision=f64"}))["layer1.weight"], values(wide));
}

std::string refusal(const std::string& path, const Config& config = tiny_config()) {
  return error_of([&] { check_weights(path, Prepared(config)); });
}

TEST(Weights, WhatDoesNotFitIsListed) {
  const TempDir dir;
  write(dir / "a", tiny_config());
  EXPECT_EQ(refusal(dir / "a"), "no error");
  copy_with(dir / "a", dir / "b",
            {{"layer0.bias", {}},
             {"layer0.weight", Tensor({23, 3072}, DType::f32)},
             {"layer1.bias", Tensor({10}, DType::i32)},
             {"layer7.bias", Tensor({10}, DType::f32)},
             {"bn.num_batches_tracked", Tensor({}, DType::i64)}});  // not an error
  EXPECT_EQ(refusal(dir / "b"), dir /
                                    "b does not hold this model's weights\n"
                                    "missing:\n  layer0.bias\n"
                                    "unexpected:\n  layer7.bias\n"
                                    "of another shape or type:\n"
                                    "  layer0.weight is F32 [23,3072], expected floats (24, 3072)\n"
                                    "  layer1.bias is I32 [10], expected floats (10)");
  const std::string other = refusal(dir / "a", small_resnet());
  EXPECT_NE(other.find("layer1.0.bn1.bias"), std::string::npos) << other;
  EXPECT_NE(other.find("and 25 more"), std::string::npos) << other;
}

Tensor with_value(const Shape& shape, DType dtype, int64_t element, double value) {
  Tensor tensor(shape, dtype);
  if (dtype == DType::f64) {
    tensor.data<double>()[element] = value;
  } else if (dtype == DType::f32) {
    tensor.data<float>()[element] = static_cast<float>(value);
  } else if (dtype == DType::bf16) {
    tensor.data<BFloat16>()[element] = BFloat16(static_cast<float>(value));
  } else {
    tensor.data<Half>()[element] = Half(static_cast<float>(value));
  }
  return tensor;
}

TEST(Weights, ValuesThatAreNotFiniteAreNamed) {
  const TempDir dir;
  write(dir / "a", tiny_config());
  const auto with = [&](DType dtype, double value, const Config& config = tiny_config()) {
    copy_with(dir / "a", dir / "b", {{"layer1.weight", with_value({10, 24}, dtype, 99, value)}});
    const std::string said = refusal(dir / "b", config);
    EXPECT_EQ(error_of([&] { read(dir / "b", config); }), said) << "for those who do not ask first";
    return said;
  };
  const std::string named = dir / "b: layer1.weight: 1 of 240 values is not finite";
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(with(DType::f32, std::nan("")), named);
  EXPECT_EQ(with(DType::f32, -infinity), named);
  EXPECT_EQ(with(DType::f16, infinity), named + " as f32 (the file has F16)");
  EXPECT_EQ(with(DType::bf16, std::nan("")), named + " as f32 (the file has BF16)");
  EXPECT_EQ(with(DType::f64, 1e300), named + " as f32 (the file has F64)");
  EXPECT_EQ(with(DType::f64, 3e38), "no error");
  const Config wide = tiny_config({"train.precision=f64"});
  EXPECT_EQ(with(DType::f64, 1e300, wide), "no error");
  EXPECT_EQ(with(DType::f64, std::nan(""), wide), named);
}

TEST(Weights, ANegativeVarianceIsNamed) {
  const TempDir dir;
  write(dir / "a", small_resnet());
  CheckpointWriter writer;
  for (const auto& [name, tensor] : tensors_in(dir / "a")) {
    if (name == "layer2.0.bn1.running_var") tensor.data<float>()[31] = -0.5f;
    if (name == "layer2.0.bn1.running_mean") tensor.data<float>()[31] = -0.5f;
    writer.add(name, tensor);
  }
  writer.write(dir / "b");
  EXPECT_EQ(refusal(dir / "b", small_resnet()),
            dir / "b: layer2.0.bn1.running_var: 1 of 32 values is negative, which no variance is");
}

/// PyTorch's save_model writes a tensor that two layers share under one name.
TEST(Weights, OneOfATensorsNamesIsEnough) {
  const TempDir dir;
  const std::string text = dir.write("text", tiny_lines(40));
  const Config tied = tiny_text_config(text, {"model.tied=true"});
  write(dir / "a", tiny_text_config(text, kOther + Overrides{"model.tied=true"}));
  const auto expected = read(dir / "a", tied);
  EXPECT_NE(read(dir / "a", tied)["encoder.weight"], std::vector<double>());
  for (const char* name : {"encoder.weight", "decoder.weight"}) {
    copy_with(dir / "a", dir / "b", {{name, {}}});
    EXPECT_EQ(refusal(dir / "b", tied), "no error");
    EXPECT_EQ(read(dir / "b", tied), expected);
  }
  copy_with(dir / "a", dir / "b", {{"encoder.weight", {}}, {"decoder.weight", {}}});
  EXPECT_EQ(refusal(dir / "b", tied),
            dir /
                "b does not hold this model's weights\nmissing:\n  decoder.weight\n  "
                "encoder.weight");
}

/// A linear layer behind a flatten, which in PyTorch is channels first.
class Flattening final : public Model {
 public:
  Flattening() : last_(8 * 8 * 3, 10) { child("last", last_); }
  Step forward(Context& context, const Batch& batch, const Carry&) override {
    const Variable logits = last_(flatten(Variable(context, batch.inputs[0])));
    return {cross_entropy(logits, batch.targets), logits};
  }

 private:
  Linear last_;
};
const ModelRegistration flattening_registration("flattening", "test: a flatten",
                                                [](Config&, const Facts&) {
                                                  return std::make_unique<Flattening>();
                                                });

/// Logits as PyTorch computes them from an image (H, W, C). `at` gives the column of a pixel.
template <class Column>
std::vector<double> logits_of(const Tensor& image, const Tensor& weight, const Column& at) {
  std::vector<double> logits(10);
  for (int64_t o = 0; o < 10; ++o)
    for (int64_t h = 0; h < 8; ++h)
      for (int64_t w = 0; w < 8; ++w)
        for (int64_t c = 0; c < 3; ++c)
          logits[static_cast<size_t>(o)] +=
              static_cast<double>(weight.data<float>()[o * 192 + at(h, w, c)]) *
              static_cast<double>(image.data<float>()[(h * 8 + w) * 3 + c]);
  return logits;
}

TEST(Weights, ColumnsBehindAFlattenArePyTorchs) {
  const TempDir dir;
  const Tensor weight({10, 192}, DType::f32), image = random_tensor({1, 8, 8, 3}, 1, DType::f32);
  for (int64_t i = 0; i < weight.numel(); ++i)
    weight.data<float>()[i] = 1e-3f * static_cast<float>(i * 7 % 1931);  // each another number
  CheckpointWriter writer;
  writer.add("last.weight", weight);
  writer.add("last.bias", Tensor({10}, DType::f32));
  writer.write(dir / "a");
  const Config config = tiny_config_of("model.name = \"flattening\"", {"data.side=8"});
  const Facts facts = Prepared(config).facts();
  std::vector<double> found;
  with_replicas(config, [&](ReplicaTest& test) {
    Replica& replica = test.replica;
    read_weights(replica.context().stream, dir / "a", replica.model(), replica.parameters(), facts);
    found = values(replica.model()
                       .forward(replica.context(), {.inputs = {image}, .count = 1}, {})
                       .output.value());
    write_weights(dir / "b", replica.model(), replica.parameters(), facts);
  });
  const std::vector<double> expected =
      logits_of(image, weight, [](int64_t h, int64_t w, int64_t c) { return (c * 8 + h) * 8 + w; });
  const std::vector<double> wrong =
      logits_of(image, weight, [](int64_t h, int64_t w, int64_t c) { return (h * 8 + w) * 3 + c; });
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-4) << "f32 sums of 192 numbers below 2";
    EXPECT_GT(std::abs(found[i] - wrong[i]), 1e-2) << "the test would not see another order";
  }
  const Tensor again(weight.shape(), DType::f32);
  CheckpointReader(dir / "b").read("last.weight", again);
  EXPECT_EQ(values(again), values(weight));
}

TEST(Weights, ALastLayerForOtherClassesStaysAsDrawn) {
  const TempDir dir;
  write(dir / "a", tiny_config(kOther));
  copy_with(
      dir / "a", dir / "b",
      {{"layer1.weight", Tensor({7, 24}, DType::f32)}, {"layer1.bias", Tensor({7}, DType::f32)}});
  EXPECT_EQ(check_weights(dir / "b", Prepared(tiny_config())),
            (std::vector<std::string>{"layer1.bias", "layer1.weight"}));
  std::map<std::string, std::vector<double>> drawn;
  with_replicas(tiny_config(), [&](ReplicaTest& test) { drawn = content(test.replica); });
  auto found = read(dir / "b", tiny_config());
  EXPECT_EQ(found["layer1.weight"], drawn["layer1.weight"]);
  EXPECT_EQ(found["layer0.weight"], read(dir / "a", tiny_config())["layer0.weight"]);
  EXPECT_NE(found["layer0.weight"], drawn["layer0.weight"]);
}

}  // namespace
}  // namespace wisp
