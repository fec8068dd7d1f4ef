#include "apps/interchange/onnx_export.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "core/channel_order.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "tests/support/error_of.h"
#include "tests/support/protobuf_reader.h"
#include "tests/support/tensors.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

/// Every op that no shipped model has in the same form, and two that do not reach the logits.
class OddModel final : public Model {
 public:
  OddModel() : conv_(3, 4, 3, {.dilation = 2}), last_(20, 10) {
    child("conv", conv_);
    child("last", last_);
  }
  Step forward(Context& context, const Batch& batch, const Carry&) override {
    const int64_t rows = batch.inputs[0].shape()[0];
    Variable x = conv_(Variable(context, batch.inputs[0]));  // (N, 4, 4, 4) of side 8
    x = max_pool2d(relu(x), 3, {.stride = 1, .pad = 1});
    x = avg_pool2d(x, 3, {.stride = 2, .pad = 1});           // (N, 2, 2, 4)
    relu(x);                                                 // of no use
    x = pad_channels(add(x, x), 5, 1);                       // (N, 2, 2, 5)
    x = reshape(reshape(x, {rows, 4, 5}), {rows, 2, 2, 5});  // back
    x = last_(dropout(reshape(x, {rows, 20}), 0.5, 0));
    return {cross_entropy(x, batch.targets), x};
  }

 private:
  Conv2d conv_;
  Linear last_;
};

/// Has an op of its own.
class OwnOpModel final : public Model {
 public:
  OwnOpModel() : last_(192, 10) { child("last", last_); }
  Step forward(Context& context, const Batch& batch, const Carry&) override {
    const Variable x =
        last_(reshape(Variable(context, batch.inputs[0]), {batch.inputs[0].shape()[0], 192}));
    const Variable logits = record("twist", x.value(), {x}, {});
    return {cross_entropy(logits, batch.targets), logits};
  }

 private:
  Linear last_;
};

/// Folds the batch into the features.
class FoldingModel final : public Model {
 public:
  FoldingModel() : last_(3, 10) { child("last", last_); }
  Step forward(Context& context, const Batch& batch, const Carry&) override {
    const Variable x =
        reshape(Variable(context, batch.inputs[0]), {batch.inputs[0].numel() / 3, 3});
    const Variable logits = last_(x);
    return {cross_entropy(logits, Tensor({logits.shape()[0]}, DType::i32)), logits};
  }

 private:
  Linear last_;
};

const ModelRegistration odd_registration("odd", "ops for a test", [](Config&, const Facts&) {
  return std::make_unique<OddModel>();
});
const ModelRegistration own_op_registration("own_op", "ops for a test", [](Config&, const Facts&) {
  return std::make_unique<OwnOpModel>();
});
const ModelRegistration folding_registration("folding", "ops for a test",
                                             [](Config&, const Facts&) {
                                               return std::make_unique<FoldingModel>();
                                             });

std::string exported(const Config& config) {
  const Facts ends = Prepared(config).facts();
  std::string bytes;
  with_replicas(config, [&](ReplicaTest& test) {
    bytes =
        onnx_model(test.replica.context(), test.replica.model(), test.replica.parameters(), ends);
  });
  return bytes;
}

// field numbers of onnx.proto3
constexpr int kGraph = 7, kNode = 1, kInitializer = 5, kInput = 11, kOutput = 12;
constexpr int kNodeInput = 1, kNodeOutput = 2, kOpType = 4, kAttribute = 5;
constexpr int kDims = 1, kDataType = 2, kTensorName = 8, kRawData = 9;

struct Graph {
  explicit Graph(const std::string& bytes) : model(bytes), graph(model.message(kGraph)) {
    for (size_t i = 0; i < graph.count(kNode); ++i) nodes.push_back(graph.message(kNode, i));
    for (size_t i = 0; i < graph.count(kInitializer); ++i) {
      const ProtobufFields tensor = graph.message(kInitializer, i);
      initializers.emplace(tensor.text(kTensorName), tensor);
    }
  }

  /// "Conv(input, conv1.weight) -> Conv_0", a line each.
  std::string str() const {
    std::string lines;
    for (const ProtobufFields& node : nodes) {
      lines += concat(node.text(kOpType), "(");
      for (size_t i = 0; i < node.count(kNodeInput); ++i)
        lines += concat(i ? ", " : "", node.text(kNodeInput, i));
      lines += concat(") -> ", node.text(kNodeOutput), "\n");
    }
    return lines;
  }
  /// Attributes of a node by name: its integers, or its one number.
  std::map<std::string, std::vector<int64_t>> attributes(size_t node) const {
    std::map<std::string, std::vector<int64_t>> found;
    for (size_t i = 0; i < nodes[node].count(kAttribute); ++i) {
      const ProtobufFields attribute = nodes[node].message(kAttribute, i);
      for (const int field : {2, 3, 8}) {  // f as bits, i, ints
        if (attribute.numbers.count(field)) {
          for (const uint64_t number : attribute.numbers.at(field))
            found[attribute.text(1)].push_back(static_cast<int64_t>(number));
        }
      }
    }
    return found;
  }
  std::vector<int64_t> dims(const std::string& initializer) const {
    const auto& numbers = initializers.at(initializer).numbers;
    if (!numbers.count(kDims)) return {};
    return {numbers.at(kDims).begin(), numbers.at(kDims).end()};
  }
  template <class T>
  std::vector<T> data(const std::string& initializer) const {
    const std::string& raw = initializers.at(initializer).text(kRawData);
    std::vector<T> numbers(raw.size() / sizeof(T));
    std::memcpy(numbers.data(), raw.data(), raw.size());
    return numbers;
  }
  /// Name and extents of an end: the batch's name first.
  std::string end(int field) const {
    const ProtobufFields value = graph.message(field);
    const ProtobufFields shape = value.message(2).message(1).message(2);
    std::string text = concat(value.text(1), " ", shape.message(1, 0).text(2));
    for (size_t i = 1; i < shape.count(1); ++i) text += concat(" ", shape.message(1, i).number(1));
    return text;
  }

  ProtobufFields model, graph;
  std::vector<ProtobufFields> nodes;
  std::map<std::string, ProtobufFields> initializers;
};

TEST(OnnxExport, APerceptronIsFlattenedGemms) {
  const Graph graph(exported(tiny_config()));
  EXPECT_EQ(graph.model.number(1), 8) << "IR version";
  EXPECT_EQ(graph.model.message(8).number(2), 17) << "opset";
  EXPECT_EQ(graph.end(kInput), "input batch 3 32 32");
  EXPECT_EQ(graph.end(kOutput), "logits batch 10");
  EXPECT_EQ(graph.str(),
            "Transpose(input) -> Transpose_0\n"
            "Reshape(Transpose_0, integers_0) -> Reshape_1\n"
            "Gemm(Reshape_1, layer0.weight, layer0.bias) -> Gemm_2\n"
            "Relu(Gemm_2) -> Relu_3\n"
            "Gemm(Relu_3, layer1.weight, layer1.bias) -> logits\n");
  EXPECT_EQ(graph.attributes(0).at("perm"), (std::vector<int64_t>{0, 2, 3, 1}));
  EXPECT_EQ(graph.data<int64_t>("integers_0"), (std::vector<int64_t>{0, 3072}));
  EXPECT_EQ(graph.attributes(2).at("transB"), (std::vector<int64_t>{1}));
  EXPECT_EQ(graph.dims("layer0.weight"), (std::vector<int64_t>{24, 3072}));
  EXPECT_EQ(graph.initializers.size(), 5u);
}

constexpr const char* kResNet = "model.name = \"resnet_cifar\"\nmodel.depth = 8";

TEST(OnnxExport, AFusedNormIsThreeNodesAndAPaddedShortcutTwo) {
  const Graph graph(exported(tiny_config_of(kResNet)));
  const std::string nodes = graph.str();
  EXPECT_NE(nodes.find("Conv(input, conv1.weight) -> Conv_0\n"
                       "BatchNormalization(Conv_0, bn1.weight, bn1.bias, bn1.running_mean, "
                       "bn1.running_var) -> BatchNormalization_1\n"
                       "Relu(BatchNormalization_1) -> Relu_2\n"),
            std::string::npos)
      << nodes;
  const size_t slice = nodes.find("Slice(");
  EXPECT_NE(slice, std::string::npos);
  EXPECT_EQ(nodes.find("Pad(", slice) != std::string::npos, true);
  EXPECT_NE(nodes.find("Add(BatchNormalization_"), std::string::npos);
  EXPECT_NE(nodes.find("GlobalAveragePool("), std::string::npos);
  EXPECT_EQ(graph.attributes(0),
            (std::map<std::string, std::vector<int64_t>>{{"kernel_shape", {3, 3}},
                                                         {"strides", {1, 1}},
                                                         {"pads", {1, 1, 1, 1}},
                                                         {"dilations", {1, 1}},
                                                         {"group", {1}}}));
  EXPECT_EQ(graph.attributes(1).at("epsilon")[0], std::bit_cast<int32_t>(1e-5f));
  EXPECT_EQ(graph.dims("layer2.0.conv1.weight"), (std::vector<int64_t>{32, 16, 3, 3}));
}

TEST(OnnxExport, WeightsAreF32ChannelsFirst) {
  for (const char* precision : {"f32", "f64"}) {
    const Config config = tiny_config_of(kResNet, {concat("train.precision=", precision)});
    const Facts ends = Prepared(config).facts();
    with_replicas(config, [&](ReplicaTest& test) {
      const Graph graph(onnx_model(test.replica.context(), test.replica.model(),
                                   test.replica.parameters(), ends));
      const FlatParameters& parameters = test.replica.parameters();
      const Tensor conv =
          channels_first(FlatParameters::view(parameters.weight(), parameters.segments().back()));
      std::vector<float> expected;
      for (const double value : values(conv)) expected.push_back(static_cast<float>(value));
      EXPECT_EQ(graph.data<float>("conv1.weight"), expected) << precision;
      EXPECT_EQ(graph.initializers.at("conv1.weight").number(kDataType), 1) << "FLOAT";
    });
  }
}

TEST(OnnxExport, AUsersModelIsMadeOfItsOps) {
  const Graph graph(exported(tiny_config_of("model.name = \"odd\"", {"data.side=8"})));
  EXPECT_EQ(graph.str(),
            "Conv(input, conv.weight) -> Conv_0\n"
            "Relu(Conv_0) -> Relu_1\n"
            "MaxPool(Relu_1) -> MaxPool_2\n"
            "AveragePool(MaxPool_2) -> AveragePool_3\n"
            "Add(AveragePool_3, AveragePool_3) -> Add_4\n"
            "Pad(Add_4, integers_1) -> Pad_5\n"
            "Transpose(Pad_5) -> Transpose_6\n"
            "Reshape(Transpose_6, integers_2) -> Reshape_7\n"
            "Reshape(Reshape_7, integers_3) -> Reshape_8\n"
            "Transpose(Reshape_8) -> Transpose_9\n"
            "Transpose(Transpose_9) -> Transpose_10\n"
            "Reshape(Transpose_10, integers_4) -> Reshape_11\n"
            "Gemm(Reshape_11, last.weight, last.bias) -> logits\n");
  EXPECT_EQ(graph.attributes(0).at("dilations"), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(graph.attributes(2),
            (std::map<std::string, std::vector<int64_t>>{
                {"kernel_shape", {3, 3}}, {"strides", {1, 1}}, {"pads", {1, 1, 1, 1}}}));
  EXPECT_EQ(graph.attributes(3).at("count_include_pad"), (std::vector<int64_t>{1}));
  EXPECT_EQ(graph.data<int64_t>("integers_1"), (std::vector<int64_t>{0, 0, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(graph.data<int64_t>("integers_3"), (std::vector<int64_t>{0, 2, 2, 5}));
}

TEST(OnnxExport, WhatHasNoFormIsNamed) {
  const std::string unknown =
      error_of([] { exported(tiny_config_of("model.name = \"own_op\"", {"data.side=8"})); });
  EXPECT_NE(unknown.find("there is no form for the op twist; there is one for add, avg_pool2d"),
            std::string::npos)
      << unknown;
  const std::string folded = error_of([] { exported(tiny_config_of("model.name = \"folding\"")); });
  EXPECT_NE(folded.find("reshape of (2, 32, 32, 3) to (2048, 3), expected to keep the batch"),
            std::string::npos)
      << folded;
}

}  // namespace
}  // namespace wisp
