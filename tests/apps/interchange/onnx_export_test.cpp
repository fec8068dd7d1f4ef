#include "apps/interchange/onnx_export.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "core/tensor/channel_order.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "tests/support/error_of.h"
#include "tests/support/onnx_rig.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

/// A model with all forms of ops that no shipped model has, and two ops that do not reach the
/// logits.
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
    relu(x);                                                 // unused result
    x = pad_channels(add(x, x), 5, 1);                       // (N, 2, 2, 5)
    x = reshape(reshape(x, {rows, 4, 5}), {rows, 2, 2, 5});  // to the old shape
    x = last_(dropout(reshape(x, {rows, 20}), 0.5, 0));
    return {cross_entropy(x, batch.targets), x};
  }

 private:
  Conv2d conv_;
  Linear last_;
};

const ModelRegistration odd_registration("odd", "ops for a test", [](Config&, const Facts&) {
  return std::make_unique<OddModel>();
});
using Ends = std::vector<std::string>;

std::string exported(Replica& replica, const Facts& facts) {
  return onnx_model(replica.context(), replica.model(), replica.parameters(), facts);
}
std::string exported(const Config& config) {
  const Facts ends = Prepared(config).facts();
  std::string bytes;
  with_replicas(config, [&](ReplicaTest& test) { bytes = exported(test.replica, ends); });
  return bytes;
}

TEST(OnnxExport, APerceptronIsFlattenedGemms) {
  const OnnxFile file(exported(tiny_config()));
  EXPECT_EQ(file.model.number(1), 8) << "IR version";
  EXPECT_EQ(file.model.message(8).number(2), 17) << "opset";
  EXPECT_EQ(file.ends(OnnxFile::kInput), Ends{"input 1 batch 3 32 32"});
  EXPECT_EQ(file.ends(OnnxFile::kOutput), Ends{"logits 1 batch 10"});
  EXPECT_EQ(file.str(),
            "Transpose(input) -> Transpose_0\n"
            "Reshape(Transpose_0, integers_0) -> Reshape_1\n"
            "Gemm(Reshape_1, layer0.weight, layer0.bias) -> Gemm_2\n"
            "Relu(Gemm_2) -> Relu_3\n"
            "Gemm(Relu_3, layer1.weight, layer1.bias) -> Gemm_4\n"
            "Identity(Gemm_4) -> logits\n");
  EXPECT_EQ(file.attributes(0).at("perm"), (std::vector<int64_t>{0, 2, 3, 1}));
  EXPECT_EQ(file.data<int64_t>("integers_0"), (std::vector<int64_t>{-1, 3072}));
  EXPECT_EQ(file.attributes(2).at("transB"), (std::vector<int64_t>{1}));
  EXPECT_EQ(file.dims("layer0.weight"), (std::vector<int64_t>{24, 3072}));
  EXPECT_EQ(file.initializers.size(), 5u);
}

constexpr const char* kResNet = "model.name = \"resnet_cifar\"\nmodel.depth = 8";

TEST(OnnxExport, AFusedNormIsThreeNodesAndAPaddedShortcutTwo) {
  const OnnxFile file(exported(tiny_config_of(kResNet)));
  const std::string nodes = file.str();
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
  EXPECT_EQ(file.attributes(0),
            (std::map<std::string, std::vector<int64_t>>{{"kernel_shape", {3, 3}},
                                                         {"strides", {1, 1}},
                                                         {"pads", {1, 1, 1, 1}},
                                                         {"dilations", {1, 1}},
                                                         {"group", {1}}}));
  EXPECT_EQ(file.attributes(1).at("epsilon")[0], std::bit_cast<int32_t>(1e-5f));
  EXPECT_EQ(file.dims("layer2.0.conv1.weight"), (std::vector<int64_t>{32, 16, 3, 3}));
}

TEST(OnnxExport, WeightsAreF32ChannelsFirst) {
  for (const char* precision : {"f32", "f64"}) {
    const Config config = tiny_config_of(kResNet, {concat("train.precision=", precision)});
    const Facts ends = Prepared(config).facts();
    with_replicas(config, [&](ReplicaTest& test) {
      const OnnxFile file(exported(test.replica, ends));
      const FlatParameters& parameters = test.replica.parameters();
      const Tensor conv =
          channels_first(FlatParameters::view(parameters.weight(), parameters.segments().back()));
      std::vector<float> expected;
      for (const double value : values(conv)) expected.push_back(static_cast<float>(value));
      EXPECT_EQ(file.data<float>("conv1.weight"), expected) << precision;
      EXPECT_EQ(file.initializers.at("conv1.weight").number(OnnxFile::kDataType), 1) << "FLOAT";
    });
  }
}

TEST(OnnxExport, AUsersModelIsMadeOfItsOps) {
  const OnnxFile file(exported(tiny_config_of("model.name = \"odd\"", {"data.side=8"})));
  EXPECT_EQ(file.str(),
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
            "Gemm(Reshape_11, last.weight, last.bias) -> Gemm_12\n"
            "Identity(Gemm_12) -> logits\n");
  EXPECT_EQ(file.attributes(0).at("dilations"), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(file.attributes(2),
            (std::map<std::string, std::vector<int64_t>>{
                {"kernel_shape", {3, 3}}, {"strides", {1, 1}}, {"pads", {1, 1, 1, 1}}}));
  EXPECT_EQ(file.attributes(3).at("count_include_pad"), (std::vector<int64_t>{1}));
  EXPECT_EQ(file.data<int64_t>("integers_1"), (std::vector<int64_t>{0, 0, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(file.data<int64_t>("integers_3"), (std::vector<int64_t>{-1, 2, 2, 5}));
}

/// A model that reads two sequences and a vector. It carries two states of one shape and an image.
/// One weight has two names, and one is cut.
class TwoStates final : public Model {
 public:
  TwoStates()
      : table_(parameter("table", {7, 5}, {})),
        gates_(parameter("gates", {10, 5}, {})),
        press_(3, 5),
        place_(4, 5) {
    child("press", press_);
    child("place", place_);
  }
  std::vector<Shape> carried() const override { return {{5}, {5}, {2, 3, 4}}; }
  std::vector<std::string> exchange_names(const std::string& name) const override {
    if (name == "table") return {"encoder", "decoder"};
    return {name};
  }
  Step forward(Context& context, const Batch& batch, const Carry& before) override {
    const Tensor& letters = batch.inputs[0];  // (T, N)
    const int64_t positions = letters.shape()[0], n = letters.shape()[1];
    const Variable seen = embedding(table_.variable, letters.reshape({positions * n}));
    const Variable pressed =
        press_(reshape(Variable(context, batch.inputs[1]), {positions * n, 3}));
    const Variable there = place_(Variable(context, batch.inputs[2]));
    Variable fast(context, before[0]), slow(context, before[1]), image(context, before[2]);
    std::vector<Variable> told;
    for (int64_t t = 0; t < positions; ++t) {
      const Variable drive =
          add(add(rows(seen, t * n, (t + 1) * n), there), rows(pressed, t * n, (t + 1) * n));
      fast = tanh(add(drive, linear(slow, rows(gates_.variable, 0, 5), {})));
      slow = tanh(add(linear(fast, rows(gates_.variable, 5, 10), {}), slow));
      image = relu(add(image, image));
      told.push_back(dropout(slow, 0.5, 0));
    }
    return {.loss = {},
            .output = linear(widen(join_rows(told)), table_.variable, {}),
            .after = {fast.value(), slow.value(), image.value()}};
  }

 private:
  Parameter& table_;
  Parameter& gates_;
  Linear press_, place_;
};

const Facts kTwoStates{.inputs = {{.name = "letters", .sample = {0}, .dtype = DType::i32},
                                  {.name = "pressure", .sample = {0, 3}},
                                  {.name = "place", .sample = {4}}}};

TEST(OnnxExport, ASequenceIsReadPositionByPosition) {
  constexpr int64_t kColumns = 4, kPositions = 5;
  OnnxRig<TwoStates> rig(kTwoStates);
  const OnnxFile file(rig.exported());
  EXPECT_EQ(file.ends(OnnxFile::kInput),
            (Ends{"letters 6 1 batch", "pressure 1 1 batch 3", "place 1 batch 4",
                  "state_0 1 batch 5", "state_1 1 batch 5", "state_2 1 batch 4 2 3"}));
  EXPECT_EQ(file.ends(OnnxFile::kOutput),
            (Ends{"logits 1 batch 7", "state_0_after 1 batch 5", "state_1_after 1 batch 5",
                  "state_2_after 1 batch 4 2 3"}));
  EXPECT_TRUE(file.initializers.count("encoder"));
  EXPECT_FALSE(file.initializers.count("decoder")) << "one weight, one initializer";

  const Tensor letters({kPositions, kColumns}, DType::i32);
  for (int64_t i = 0; i < letters.numel(); ++i)
    letters.data<int32_t>()[i] = static_cast<int32_t>(i * 3 % 7);
  const Tensor pressure = random_tensor({kPositions, kColumns, 3}, 1, DType::f32);
  const Tensor place = random_tensor({kColumns, 4}, 2, DType::f32);
  const Carry before{random_tensor({kColumns, 5}, 3, DType::f32),
                     random_tensor({kColumns, 5}, 4, DType::f32),
                     random_tensor({kColumns, 2, 3, 4}, 5, DType::f32)};
  const Step step = rig.forward({letters, pressure, place}, before, kPositions * kColumns);

  OnnxArrays ends{{"place", OnnxArray::of(place)}};
  for (size_t i = 0; i < 3; ++i)
    ends[concat("state_", i)] = OnnxArray::of(channels_first(before[i]));
  for (int64_t t = 0; t < kPositions; ++t) {
    ends["letters"] = OnnxArray::of(letters.rows(t, t + 1));
    ends["pressure"] = OnnxArray::of(pressure.rows(t, t + 1));
    const OnnxArrays found = evaluate(file, ends);
    const Tensor logits = step.output.value().rows(t * kColumns, (t + 1) * kColumns);
    expect_near(found.at("logits"), OnnxArray::of(logits), concat("position ", t));
    for (size_t i = 0; i < 3; ++i)
      ends[concat("state_", i)] = found.at(concat("state_", i, "_after"));
  }
  for (size_t i = 0; i < 3; ++i)
    expect_near(ends[concat("state_", i)], OnnxArray::of(channels_first(step.after[i])),
                concat("state ", i));
}

TEST(OnnxExport, TheContextIsAsItWas) {
  OnnxRig<TwoStates> rig(kTwoStates);
  const std::string f32 = rig.exported();
  Context& context = rig.worker.context;
  EXPECT_TRUE(context.training && context.recording && !context.log);
  EXPECT_FALSE(context.samples.defined());
  context.compute = DType::bf16;  // the graph still has the weights' type
  EXPECT_TRUE(rig.exported() == f32);
  EXPECT_EQ(context.compute, DType::bf16);
}

/// A model whose step a test defines, from an input x (N, 3).
class AnyStep final : public Model {
 public:
  using Forward = std::function<Step(const Variable& x, const Carry& before)>;
  AnyStep(std::vector<Shape> carried, Forward forward)
      : carried_(std::move(carried)), forward_(std::move(forward)) {
    parameter("unused", {1}, {});
  }
  std::vector<Shape> carried() const override { return carried_; }
  Step forward(Context& context, const Batch& batch, const Carry& before) override {
    return forward_(Variable(context, batch.inputs[0]), before);
  }

 private:
  std::vector<Shape> carried_;
  Forward forward_;
};

TEST(OnnxExport, AStateMayBeHandedOnAsItIs) {
  OnnxRig<AnyStep> rig({.inputs = {{.name = "x", .sample = {3}}}}, std::vector<Shape>{{3}},
                       [](const Variable& x, const Carry& before) {
                         return Step{.loss = {}, .output = tanh(x), .after = before};
                       });
  EXPECT_EQ(OnnxFile(rig.exported()).str(),
            "Tanh(x) -> Tanh_0\n"
            "Identity(Tanh_0) -> logits\n"
            "Identity(state_0) -> state_0_after\n");
}

/// The export's error for a model that carries nothing, reads one padded sample (T, 3), and returns
/// the result of `forward`.
std::string refusal_of_padded(const AnyStep::Forward& forward) {
  const Facts facts{.inputs = {{.name = "x", .sample = {0, 3}, .padded = true}}};
  return error_of([&] { OnnxRig<AnyStep>(facts, std::vector<Shape>{}, forward).exported(); });
}

TEST(OnnxExport, RefusesWhatAGraphOfAnyFramesCannotSay) {
  const auto told = [](const Variable& output) { return Step{.loss = {}, .output = output}; };
  EXPECT_EQ(refusal_of_padded([](const Variable& x, const Carry&) {
              return Step{.loss = {}, .output = tanh(x), .lengths = Tensor({1}, DType::i64)};
            }),
            "onnx: the model gives 1 lengths for an output (1, 32, 3) of one sample, expected one "
            "length, the output's second extent");
  EXPECT_EQ(refusal_of_padded([&](const Variable& x, const Carry&) {
              const int64_t frames = x.shape()[1];
              return told(tanh(rows(reshape(x, {frames, 3}), 0, frames / 2)));
            }),
            "onnx: rows [0, 16) of (32, 3), which grow with the frames, expected all of them");
  EXPECT_EQ(refusal_of_padded([&](const Variable& x, const Carry&) {
              const int64_t frames = x.shape()[1];
              return told(rows(reshape(x, {frames, 3}), 0, frames - 1));
            }),
            "onnx: the end of rows is 31 in a batch and 47 in one 1.5 times as large, expected "
            "the same or 1.5 times as much");
}

/// The export's error for a model that carries a state (2) and returns the result of `forward`.
std::string refusal_of(const Feed& feed, const AnyStep::Forward& forward) {
  return error_of(
      [&] { OnnxRig<AnyStep>({.inputs = {feed}}, std::vector<Shape>{{2}}, forward).exported(); });
}

TEST(OnnxExport, RefusesWhatAGraphCannotSay) {
  const Feed x{.name = "x", .sample = {3}};
  const auto same = [](const Variable& input, const Carry& before) {
    return Step{.loss = {}, .output = tanh(input), .after = before};
  };
  EXPECT_EQ(refusal_of({.name = "x", .sample = {3}, .dtype = DType::u8}, same),
            "onnx: input x is u8, expected f32, i32 or i64");
  EXPECT_EQ(refusal_of({.name = "x", .sample = {4, 0}}, same),
            "onnx: extent 1 of input x (4, 0) varies, but only the first extent, the positions "
            "of a sequence, may vary");
  EXPECT_EQ(refusal_of({.name = "x", .sample = {0, 3, 3}}, same),
            "onnx: input x is a sequence of (0, 3, 3), expected numbers or vectors at each "
            "position");
  EXPECT_EQ(refusal_of({.name = "logits", .sample = {3}}, same),
            "onnx: two values are called logits, expected a name of its own for each");
  EXPECT_EQ(error_of([&] {
              OnnxRig<AnyStep>({.inputs = {{.name = "x", .sample = {0}}}}, std::vector<Shape>{},
                               same)
                  .exported();
            }),
            "onnx: input x (0) is a sequence, which a graph reads one position at a time, but the "
            "model carries no state from one position to the next");
  EXPECT_EQ(refusal_of({.name = "x", .sample = {0, 3}, .padded = true}, same),
            "onnx: input x (0, 3) is padded, so a graph reads each sample as a whole, but the "
            "model carries state from one to the next");

  const auto with_after = [](const Carry& after) {
    return [after](const Variable& input, const Carry&) {
      return Step{.loss = {}, .output = tanh(input), .after = after};
    };
  };
  EXPECT_EQ(refusal_of(x, with_after({})),
            "onnx: the model left a state of 0 tensors, but Model::carried() declares 1");
  EXPECT_EQ(refusal_of(x, with_after({full({2, 9}, 0)})),
            "onnx: the model left a state tensor of (2, 9), expected (2, 2) by Model::carried()");
  EXPECT_EQ(refusal_of(x,
                       [](const Variable& input, const Carry& before) {
                         return Step{.loss = {},
                                     .output = tanh(input),
                                     .after = {full(before[0].shape(), 0.0, DType::f32)}};
                       }),
            "onnx: state 0 that the model left, (2, 2), is not the result of an op");
  EXPECT_EQ(
      refusal_of(x,
                 [](const Variable& input, const Carry& before) {
                   return Step{.loss = {},
                               .output = tanh(input),
                               .lengths = Tensor({2}, DType::i64),
                               .after = before};
                 }),
      "onnx: the model gives lengths of its output rows, which a graph cannot compute; expected "
      "rows of full length");
  EXPECT_EQ(refusal_of(x,
                       [](const Variable& input, const Carry& before) {
                         return Step{
                             .loss = {},
                             .output = Variable(input.context(), full({2, 2}, 0.0, DType::f32)),
                             .after = before};
                       }),
            "onnx: the model's output is no op's result");
}

TEST(OnnxExport, OfASequenceALayerNeedsTheStateBefore) {
  const Feed x{.name = "x", .sample = {0, 3}};
  const auto without = [](const Variable& input, const Carry& before) {
    Context& context = input.context();
    const int64_t n = input.shape()[1];
    const Variable weight(context, full({2, 3}, 0.1, DType::f32)),
        recurrent(context, full({2, 2}, 0.1, DType::f32)),
        bias(context, full({2}, 0.1, DType::f32));
    const RnnParameters parameters{weight, recurrent, bias, bias};
    return Step{.loss = {},
                .output = rnn(RnnCell::tanh, reshape(input, {n, 3}), {n}, {parameters}).y,
                .after = before};
  };
  EXPECT_EQ(refusal_of(x, without),
            "onnx: a recurrent layer with 1 directions over 1 positions without a state cannot be "
            "exported; expected one direction, one position and a state, or whole samples without "
            "a state");
}

}  // namespace
}  // namespace wisp
