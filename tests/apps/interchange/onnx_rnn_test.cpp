#include <gtest/gtest.h>

#include <functional>

#include "core/ops.h"
#include "layers/rnn.h"
#include "tests/support/error_of.h"
#include "tests/support/onnx_rig.h"

namespace wisp {
namespace {

/// A function that applies a layer of 2 inputs and 3 units to x (N, 6).
using Reading = std::function<Variable(const Rnn& layer, const Variable& x)>;

class ReadingModel final : public Model {
 public:
  ReadingModel(const RnnOptions& options, Reading reading)
      : reading_(std::move(reading)), rnn_(2, 3, options) {
    child("rnn", rnn_);
  }
  Step forward(Context& context, const Batch& batch, const Carry&) override {
    return {.loss = {}, .output = reading_(rnn_, Variable(context, batch.inputs[0]))};
  }

 private:
  Reading reading_;
  Rnn rnn_;
};

const Facts kFacts{.inputs = {{.name = "x", .sample = {6}}}};

std::string refusal_of(const Reading& reading) {
  return error_of([&] { OnnxRig<ReadingModel>(kFacts, RnnOptions{}, reading).exported(); });
}

/// Reads x as N sequences of three positions.
RnnResult read_all(const Rnn& layer, const Variable& x) {
  const int64_t n = x.shape()[0];
  return layer(reshape(x, {3 * n, 2}), {n, n, n});
}

/// Expects equal results of layer and graph for several batch sizes. Returns the graph's nodes.
std::string same_in_graph(const RnnOptions& options) {
  OnnxRig<ReadingModel> rig(
      kFacts, options, [](const Rnn& layer, const Variable& x) { return read_all(layer, x).y; });
  const OnnxFile file(rig.exported());
  for (const int64_t samples : {1, 2, 5}) {
    const Tensor x = random_tensor({samples, 6}, 7, DType::f32);
    const Step step = rig.forward({x}, {}, samples);
    const OnnxArrays found = evaluate(file, {{"x", OnnxArray::of(x)}});
    expect_near(found.at("logits"), OnnxArray::of(step.output.value()), concat(samples));
  }
  return file.str();
}

TEST(OnnxRnn, WithoutAStateBeforeItIsOneNode) {
  for (const int64_t directions : {1, 2}) {
    EXPECT_EQ(
        same_in_graph({.cell = RnnCell::lstm, .directions = directions}),
        "Reshape(x, integers_0) -> Reshape_0\n"
        "Reshape(Reshape_0, integers_1) -> Reshape_1\n"
        "LSTM(Reshape_1, rnn.weight_ih_l0.W, rnn.weight_hh_l0.R, rnn.bias_ih_l0.B) -> LSTM_2\n"
        "Transpose(LSTM_2) -> Transpose_3\n"
        "Reshape(Transpose_3, integers_5) -> Reshape_4\n"
        "Identity(Reshape_4) -> logits\n");
    EXPECT_NE(same_in_graph({.cell = RnnCell::gru, .directions = directions}).find("GRU(Reshape_1"),
              std::string::npos);
    EXPECT_NE(
        same_in_graph({.cell = RnnCell::tanh, .directions = directions}).find("RNN(Reshape_1"),
        std::string::npos);
  }
}

TEST(OnnxRnn, SequencesOfSeveralLengthsAreRefused) {
  EXPECT_EQ(refusal_of([](const Rnn& layer, const Variable& x) {
              const int64_t n = x.shape()[0];
              return layer(reshape(x, {3 * n, 2}), {2 * n, n}).y;
            }),
            "onnx: a recurrent layer over 6 rows of 4 sequences of up to 2 positions, expected "
            "sequences of one length");
}

TEST(OnnxRnn, TheStateBehindAWholeSequenceIsRefused) {
  EXPECT_EQ(refusal_of([](const Rnn& layer, const Variable& x) {
              return Variable(x.context(), read_all(layer, x).after.h);
            }),
            "onnx: the model uses the final state of a recurrent layer over whole sequences, of "
            "which ONNX export has only the output");
}

TEST(OnnxRnn, AStateBeforeSeveralPositionsIsRefused) {
  EXPECT_EQ(
      refusal_of([](const Rnn& layer, const Variable& x) {
        const int64_t n = x.shape()[0];
        const Tensor state = full({1, n, 3}, 0.5, DType::f32);
        return layer(reshape(x, {3 * n, 2}), {n, n, n}, {state, state}).y;
      }),
      "onnx: a recurrent layer with 1 directions over 3 positions with a state cannot be "
      "exported; expected one direction, one position and a state, or whole samples without a "
      "state");
}

TEST(OnnxRnn, WeightsThatAreNoParametersAreRefused) {
  EXPECT_EQ(refusal_of([](const Rnn&, const Variable& x) {
              const Variable weight(x.context(), full({6, 6}, 0.1, DType::f32));
              const Variable bias(x.context(), full({6}, 0.1, DType::f32));
              const RnnParameters parameters{weight, weight, bias, bias};
              return rnn(RnnCell::tanh, x, {x.shape()[0]}, {parameters}).y;
            }),
            "onnx: input 1 of rnn, (6, 6), is not a parameter, expected one, because ONNX has "
            "another order of gates");
}

}  // namespace
}  // namespace wisp
