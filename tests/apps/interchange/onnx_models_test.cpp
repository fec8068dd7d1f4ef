#include <gtest/gtest.h>

#include <cmath>

#include "models/alexnet.h"
#include "models/deepspeech.h"
#include "models/lstm_lm.h"
#include "models/vgg.h"
#include "tests/support/formula_weights.h"
#include "tests/support/image_models.h"
#include "tests/support/onnx_rig.h"

namespace wisp {
namespace {

using Ends = std::vector<std::string>;

TEST(OnnxModels, ALanguageModelOfEachCellIsReadWordByWord) {
  constexpr int64_t kWords = 7, kColumns = 3, kPositions = 4;
  const Facts text{.inputs = {{.name = "tokens", .sample = {0}, .dtype = DType::i32}},
                   .classes = kWords};
  for (const RnnCell cell : {RnnCell::lstm, RnnCell::gru, RnnCell::tanh}) {
    const LstmLmOptions options{.cell = cell, .layers = 2, .units = 5, .tied = true};
    OnnxRig<LstmLm> rig(text, options, text);
    const OnnxFile file(rig.exported());
    const auto states = std::ssize(rig.model.carried());
    const Tensor tokens({kPositions, kColumns}, DType::i32);
    for (int64_t i = 0; i < tokens.numel(); ++i)
      tokens.data<int32_t>()[i] = static_cast<int32_t>(i * 3 % kWords);
    Carry before;
    for (int64_t i = 0; i < states; ++i)
      before.push_back(random_tensor({kColumns, 5}, static_cast<uint64_t>(40 + i), DType::f32));
    const Step whole = rig.forward({tokens}, before, kPositions * kColumns);

    OnnxArrays state;
    for (int64_t i = 0; i < states; ++i)
      state[concat("state_", i)] = OnnxArray::of(before[static_cast<size_t>(i)]);
    for (int64_t t = 0; t < kPositions; ++t) {
      OnnxArrays inputs = state;
      inputs["tokens"] = OnnxArray::of(tokens.rows(t, t + 1));
      const OnnxArrays found = evaluate(file, inputs);
      const Tensor expected = whole.output.value().rows(t * kColumns, (t + 1) * kColumns);
      expect_near(found.at("logits"), OnnxArray::of(expected), concat("logits of position ", t));
      for (int64_t i = 0; i < states; ++i)
        state[concat("state_", i)] = found.at(concat("state_", i, "_after"));
    }
    for (int64_t i = 0; i < states; ++i)
      expect_near(state.at(concat("state_", i)), OnnxArray::of(whole.after[static_cast<size_t>(i)]),
                  concat("state ", i));
    EXPECT_TRUE(file.initializers.count("rnn.weight_hh_l1"));
    EXPECT_TRUE(file.initializers.count("encoder.weight"));
    EXPECT_FALSE(file.initializers.count("decoder.weight")) << "one weight, one initializer";
  }
}

/// Draws running means around 0 and variances around 1.5.
void draw_statistics(Model& model) {
  for (const Buffer* buffer : model.buffers()) {
    const double center = buffer->name.ends_with("var") ? 1.5 : 0.0;
    for (int64_t i = 0; i < buffer->value.numel(); ++i)
      buffer->value.data<float>()[i] =
          static_cast<float>(center + std::sin(static_cast<double>(i)));
  }
}

TEST(OnnxModels, ADeepSpeechOfEachCellReadsAnUtteranceOfAnyLength) {
  constexpr int64_t kFrequencies = 8, kLetters = 5;
  const Facts speech{
      .inputs = {{.name = "spectrogram", .sample = {0, kFrequencies}, .padded = true}},
      .classes = kLetters};
  for (const RnnCell cell : {RnnCell::lstm, RnnCell::gru, RnnCell::tanh}) {
    const DeepSpeechOptions options{.convolutions = cell == RnnCell::gru ? 3 : 2,
                                    .conv_bias = cell != RnnCell::lstm,
                                    .cell = cell,
                                    .layers = 2,
                                    .units = 4};
    OnnxRig<DeepSpeech> rig(speech, options, speech);
    draw_statistics(rig.model);
    const OnnxFile file(rig.exported());
    EXPECT_EQ(file.ends(OnnxFile::kInput), Ends{"spectrogram 1 1 frames 8"});
    EXPECT_EQ(file.ends(OnnxFile::kOutput), Ends{"logits 1 1 positions 5"});
    for (const int64_t frames : {1, 2, 7, 12}) {
      const Tensor sound = random_tensor({1, frames, kFrequencies}, 3, DType::f32);
      Tensor lengths({1}, DType::i64);
      lengths.data<int64_t>()[0] = frames;
      const Step step = rig.forward({.inputs = {sound}, .lengths = lengths, .count = 1}, {});
      const OnnxArrays found = evaluate(file, {{"spectrogram", OnnxArray::of(sound)}});
      expect_near(found.at("logits"), OnnxArray::of(step.output.value()),
                  concat(frames, " frames"));
    }
    EXPECT_TRUE(file.initializers.count("rnns.1.rnn.weight_hh_l0.R"));
    EXPECT_TRUE(file.initializers.count("fc.0.module.1.weight"));
  }
}

/// Expects the graph of a model with the formula's weights to give its logits and to hold its
/// weights as a file does.
template <class M>
void expect_graph_of_images(FormulaModel<M>& rig, const Facts& facts) {
  const Shape& sample = facts.inputs[0].sample;
  const OnnxFile file(onnx_model(rig.worker.context, rig.model, rig.parameters, facts));
  const Tensor image = formula_image(sample[0], sample[1]);
  const OnnxArrays found = evaluate(file, {{"input", OnnxArray::of(channels_first(image))}});
  const std::vector<double> expected = rig.logits(image), logits = found.at("logits").values;
  ASSERT_EQ(logits.size(), expected.size());
  for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], expected[i], 1e-4) << i;
  EXPECT_GT(std::abs(logits[0] - logits[1]), 1e-2) << "the logits say something";
  for (const Segment& segment : rig.parameters.all_segments()) {
    const std::string name = rig.model.exchange_names(segment.name).front();
    const Tensor weight = formula_weight(name, channels_first(segment.shape));
    EXPECT_EQ(file.data<float>(name),
              std::vector<float>(weight.data<float>(), weight.data<float>() + weight.numel()))
        << name;
  }
}

TEST(OnnxModels, AnAlexNetReadsImages) {
  for (const int64_t groups : {1, 2}) {
    const Facts facts = image_facts(63, 290, 5);  // 1 x 8 positions are averaged to 6 x 6
    FormulaModel<AlexNet> rig(
        AlexNetPlan{.channels = {4, 6, 8, 8, 4}, .groups = groups, .hidden = 16}, facts);
    expect_graph_of_images(rig, facts);
  }
}

TEST(OnnxModels, AVggReadsImages) {
  for (const bool batch_norm : {false, true}) {
    const Facts facts = image_facts(33, 290, 5);  // 1 x 9 positions are averaged to 7 x 7
    FormulaModel<Vgg> rig(
        VggPlan{
            .convolutions = {1, 1, 2, 2, 2}, .width = 2, .hidden = 16, .batch_norm = batch_norm},
        facts);
    expect_graph_of_images(rig, facts);
  }
}

TEST(OnnxModels, OfTheSizeOfImageNetNeedNoMeans) {
  const Facts facts = image_facts(224, 224, 5);
  FormulaModel<AlexNet> rig(AlexNetPlan{.channels = {4, 6, 8, 8, 4}, .hidden = 16}, facts);
  const OnnxFile file(onnx_model(rig.worker.context, rig.model, rig.parameters, facts));
  EXPECT_EQ(file.ends(OnnxFile::kInput), Ends{"input 1 batch 3 224 224"});
  const std::string nodes = file.str();
  EXPECT_EQ(nodes.substr(nodes.find("MaxPool(Relu_11)")),
            "MaxPool(Relu_11) -> MaxPool_12\n"
            "Flatten(MaxPool_12) -> Flatten_13\n"
            "Gemm(Flatten_13, classifier.1.weight, classifier.1.bias) -> Gemm_14\n"
            "Relu(Gemm_14) -> Relu_15\n"
            "Gemm(Relu_15, classifier.4.weight, classifier.4.bias) -> Gemm_16\n"
            "Relu(Gemm_16) -> Relu_17\n"
            "Gemm(Relu_17, classifier.6.weight, classifier.6.bias) -> Gemm_18\n"
            "Identity(Gemm_18) -> logits\n");
}

}  // namespace
}  // namespace wisp
