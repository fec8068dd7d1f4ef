#include "models/deepspeech.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

Facts speech(int64_t features, int64_t classes) {
  return {.inputs = {{.name = "spectrogram", .sample = {0, features}, .padded = true}},
          .classes = classes,
          .names = {"_", "a", "b", "c", " "}};
}

int64_t parameter_count(const DeepSpeechOptions& options) {
  DeepSpeech model(options, speech(161, 29));
  int64_t count = 0;
  for (const Parameter* parameter : model.parameters()) count += parameter->shape.numel();
  return count;
}

TEST(DeepSpeech, HasTheParameterCountsOfPyTorchs) {
  EXPECT_EQ(parameter_count({.cell = RnnCell::gru, .layers = 3, .units = 300}), 5'334'068);
  EXPECT_EQ(parameter_count({.cell = RnnCell::lstm, .layers = 3, .units = 300}), 7'024'868);
  EXPECT_EQ(parameter_count({.cell = RnnCell::lstm, .layers = 5, .units = 800}), 54'823'168);
}

/// Lin et al. 2018, table 4: 488.08 MB in f32.
TEST(DeepSpeech, WithThreeConvolutionsIsThatOfDeepGradientCompression) {
  const int64_t count = parameter_count(
      {.convolutions = 3, .conv_bias = false, .cell = RnnCell::gru, .layers = 7, .units = 1200});
  EXPECT_NEAR(static_cast<double>(count) * 4 / (1 << 20), 488.08, 0.005);
}

/// Sequences n of frames t and features f: sin(0.3 t + 1.1 f + n + first), padded with zeros.
Batch sound(const std::vector<int64_t>& lengths, const std::vector<std::vector<int32_t>>& labels,
            int64_t positions, DType dtype, int64_t first = 0) {
  const auto count = static_cast<int64_t>(lengths.size());
  std::vector<double> features;
  for (int64_t n = 0; n < count; ++n)
    for (int64_t t = 0; t < positions; ++t)
      for (int64_t f = 0; f < 13; ++f)
        features.push_back(t < lengths[static_cast<size_t>(n)]
                               ? std::sin(0.3 * static_cast<double>(t) +
                                          1.1 * static_cast<double>(f) +
                                          static_cast<double>(n + first))
                               : 0.0);
  Tensor targets({count, 4}, DType::i32);
  for (int64_t n = 0; n < count; ++n)
    for (size_t i = 0; i < 4; ++i) {
      const std::vector<int32_t>& text = labels[static_cast<size_t>(n)];
      targets.data<int32_t>()[4 * n + static_cast<int64_t>(i)] = i < text.size() ? text[i] : -1;
    }
  return {.inputs = {tensor({count, positions, 13}, features, dtype)},
          .targets = targets,
          .lengths = tensor_of<int64_t>(lengths),
          .samples = sample_ids(count),
          .count = count};
}

const std::vector<std::vector<int32_t>> kLabels{{1, 2, 2, 4}, {3, 1}};

struct Placed {
  explicit Placed(bool training, TestContextOptions options = {})
      : worker(options),
        model({.cell = RnnCell::gru, .layers = 2, .units = 3}, speech(13, 5)),
        parameters(worker.context, model.parameters(), model.buffers()) {
    worker.context.training = training;
    for (const Segment& segment : parameters.segments()) {
      const Tensor value = FlatParameters::view(parameters.weight(), segment);
      set(value, segment.name, segment.kind == "conv");
    }
    for (const Buffer* buffer : parameters.buffers()) set(buffer->value, buffer->name, false);
  }

  /// Sets each element by its index in PyTorch's layout, and by the length of PyTorch's name.
  void set(const Tensor& tensor, const std::string& name, bool channels_last) {
    const std::string there = model.exchange_names(name)[0];
    const double scale = tensor.numel() > 100 ? 0.02 : 0.2;
    const double offset = there.ends_with("running_var") ? 1.5 : 0.0;
    const Shape& shape = tensor.shape();
    std::vector<double> numbers;
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      int64_t place = i;
      if (channels_last) {
        const int64_t area = shape[1] * shape[2], in = shape[3];
        place = (i / (area * in) * in + i % in) * area + i / in % area;
      }
      numbers.push_back(offset + scale * std::sin(0.7 * static_cast<double>(place) +
                                                  static_cast<double>(there.size())));
    }
    const Tensor from = ::wisp::tensor(shape, numbers, tensor.dtype());
    std::copy(from.raw(), from.raw() + from.bytes(), tensor.raw());
  }

  double absolute_gradient(const std::string& name) {
    for (const Segment& segment : parameters.segments()) {
      if (segment.name != name) continue;
      double sum = 0;
      for (const double g : values(parameters.gradient(segment.id))) sum += std::abs(g);
      return sum;
    }
    return std::nan("");
  }

  TestContext worker;
  DeepSpeech model;
  FlatParameters parameters;
};

/// Numbers of PyTorch 2.15 in f64, for each sequence alone, with the weights of Placed::set().
TEST(DeepSpeech, IsPyTorchs) {
  Placed placed(/*training=*/false);
  const Step step =
      placed.model.forward(placed.worker.context, sound({23, 17}, kLabels, 32, DType::f64), {});
  EXPECT_EQ(step.output.shape(), Shape({2, 12, 5}));
  EXPECT_EQ(step.lengths.data<int64_t>()[0], 12);
  EXPECT_EQ(step.lengths.data<int64_t>()[1], 9);
  const std::vector<double> logits = values(step.output.value());
  const double first[] = {-0.01594488, -0.01516023, 0.03125205, -0.01639472, -0.01469843};
  const double last[] = {-0.01772187, -0.01681993, 0.03470482, -0.01822125, -0.01630696};
  for (size_t c = 0; c < 5; ++c) {
    EXPECT_NEAR(logits[c], first[c], 1e-8);
    EXPECT_NEAR(logits[(12 + 8) * 5 + c], last[c], 1e-8);
  }
  EXPECT_NEAR(values(step.loss.value())[0], 9.62559587424951, 1e-9);

  backward(step.loss);
  const auto near = [&](const char* name, double expected) {
    EXPECT_NEAR(placed.absolute_gradient(name) / expected, 1.0, 1e-6) << name;
  };
  near("conv.seq_module.0.weight", 0.00010948531972135479);
  near("conv.seq_module.3.bias", 6.862294605259204e-05);
  near("rnns.0.rnn.weight_ih_l0_reverse", 0.009830500483717971);
  near("fc.0.module.1.weight", 1.277471214291346);
}

TEST(DeepSpeech, PaddingChangesNothingInTraining) {
  std::vector<double> losses, gradients;
  for (const int64_t positions : {23, 40, 71}) {
    Placed placed(/*training=*/true);
    const Step step = placed.model.forward(placed.worker.context,
                                           sound({23, 17}, kLabels, positions, DType::f64), {});
    losses.push_back(values(step.loss.value())[0]);
    backward(step.loss);
    gradients.push_back(placed.absolute_gradient("conv.seq_module.0.weight"));
  }
  for (const double loss : losses) EXPECT_NEAR(loss, losses[0], 1e-12);
  for (const double gradient : gradients) EXPECT_NEAR(gradient / gradients[0], 1.0, 1e-9);
}

TEST(DeepSpeech, AnUtteranceIsReadTheSameBesideOthers) {
  Placed placed(/*training=*/false, {.compute = DType::f32, .library = Library::fastest});
  const auto logits = [&](const Batch& batch) {
    return values(placed.model.forward(placed.worker.context, batch, {}).output.value());
  };
  const std::vector<double> both = logits(sound({23, 17}, kLabels, 64, DType::f32));
  const std::vector<double> alone = logits(sound({17}, {kLabels[1]}, 17, DType::f32, 1));
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(alone[i], both[12 * 5 + i], 1e-6);
}

TEST(DeepSpeech, MeasuresWordsAndCharacters) {
  Placed placed(/*training=*/false);
  const Batch batch = sound({23, 17}, kLabels, 32, DType::f64);
  const Step step = placed.model.forward(placed.worker.context, batch, {});
  const Tensor sums = full({4, 2}, 0.0);
  placed.model.measure(step, batch, sums);
  // b is the likeliest class in every frame: heard "b" and "b", said "abb " and "ca"
  EXPECT_EQ(values(sums), (std::vector<double>{2, 2, 2 + 2, 3 + 2, 0, 12 + 9, 0, 2}));
  EXPECT_EQ(placed.model.metrics()[0].name, "wer");
}

TEST(DeepSpeech, RefusesWhatItCannotRead) {
  const auto error = [](const DeepSpeechOptions& options, const Facts& facts) {
    return error_of([&] { DeepSpeech(options, facts); });
  };
  EXPECT_NE(
      error({}, {.inputs = {{.name = "input", .sample = {32, 32, 3}}}}).find("no spectrograms"),
      std::string::npos);
  EXPECT_EQ(error({.convolutions = 4}, speech(13, 5)),
            "deepspeech: 4 convolutions, expected 2 or 3");
  EXPECT_NE(error({.layers = 1001}, speech(13, 5)).find("1001 layers of "), std::string::npos);
  EXPECT_EQ(error({.units = 4000000000}, speech(13, 5)),
            "out of memory: a shape of (12000000000, 4000000000), expected at most 2^58 elements");
  Placed placed(/*training=*/false);
  EXPECT_NE(
      error_of([&] {
        placed.model.forward(placed.worker.context, sound({17, 23}, kLabels, 32, DType::f64), {});
      }).find("expected the longest first"),
      std::string::npos);
}

}  // namespace
}  // namespace wisp
