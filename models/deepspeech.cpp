#include "models/deepspeech.h"

#include <algorithm>

#include "layers/init.h"

namespace wisp {
namespace {

constexpr double kClip = 20.0;
constexpr int64_t kTimeKernel = 11, kTimePad = 5;

/// A convolution's kernel over frequencies. Its stride there is 2, its padding half the kernel.
struct Plan {
  int maps;
  int64_t frequencies;
};
constexpr Plan kPlans[] = {{32, 41}, {32, 21}, {96, 21}};

void check(const DeepSpeechOptions& options, const Facts& facts) {
  WISP_CHECK(
      facts.inputs.size() == 1 && facts.inputs[0].padded && facts.inputs[0].sample.rank() == 2,
      "deepspeech: the data set has no spectrograms; expected speech (data.name = an4, "
      "librispeech, speech)");
  WISP_CHECK(options.convolutions == 2 || options.convolutions == 3,
             "deepspeech: ", options.convolutions, " convolutions, expected 2 or 3");
  WISP_CHECK(0 < options.layers && options.layers <= kMostRnnLayers && options.units > 0,
             "deepspeech: ", options.layers, " layers of ", options.units, " units, expected 1 to ",
             kMostRnnLayers, " layers of 1 unit or more");
}

/// The first convolution halves the frames.
int64_t time_stride(size_t convolution) { return convolution == 0 ? 2 : 1; }

/// The number of sequences that reach each position.
std::vector<int64_t> rows_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> rows(static_cast<size_t>(lengths.front()));
  for (const int64_t length : lengths)
    for (int64_t t = 0; t < length; ++t) ++rows[static_cast<size_t>(t)];
  return rows;
}

std::unique_ptr<Model> make_deepspeech(Config& config, const Facts& facts) {
  DeepSpeechOptions options;
  config.bind("model.convolutions", options.convolutions,
              "number of convolutions: 2, or 3 as in the largest models");
  config.bind("model.conv_bias", options.conv_bias, "bias in the convolutions, before their norm");
  config.bind_choice("model.cell", options.cell, rnn_cells(),
                     "cell of the recurrent layers: lstm, gru or tanh");
  config.bind("model.layers", options.layers,
              "number of bidirectional recurrent layers, whose directions are added");
  config.bind("model.units", options.units, "hidden size of each layer and direction");
  return std::make_unique<DeepSpeech>(options, facts);
}

const ModelRegistration deepspeech_registration("deepspeech", "Deep Speech 2 (Amodei et al. 2016)",
                                                make_deepspeech);

}  // namespace

DeepSpeech::DeepSpeech(const DeepSpeechOptions& options, const Facts& facts) : options_(options) {
  check(options, facts);
  const auto found = std::find(facts.names.begin(), facts.names.end(), " ");
  if (found != facts.names.end()) space_ = static_cast<int32_t>(found - facts.names.begin());

  int64_t frequencies = facts.inputs[0].sample[1];
  int maps = 1;
  for (int64_t i = 0; i < options.convolutions; ++i) {
    const Plan& plan = kPlans[i];
    const int64_t pad = plan.frequencies / 2;
    const ConvOptions conv{.stride = {2, time_stride(static_cast<size_t>(i))},
                           .pad = {pad, kTimePad}};
    const Init weight = uniform_for(maps * plan.frequencies * kTimeKernel);
    child(concat("conv.seq_module.", 3 * i),
          convolutions_.emplace_back(maps, plan.maps, Axes{plan.frequencies, kTimeKernel}, conv,
                                     options.conv_bias, weight));
    child(concat("conv.seq_module.", 3 * i + 1), convolution_norms_.emplace_back(plan.maps));
    frequencies = (frequencies + 2 * pad - plan.frequencies) / 2 + 1;
    maps = plan.maps;
  }
  int64_t width = Shape{maps, frequencies}.numel();
  for (int64_t i = 0; i < options.layers; ++i) {
    if (i > 0) child(concat("rnns.", i, ".batch_norm.module"), norms_.emplace_back(width));
    const RnnOptions both_ways{.cell = options.cell, .directions = 2};
    child(concat("rnns.", i, ".rnn"), layers_.emplace_back(width, options.units, both_ways));
    width = options.units;
  }
  child("fc.0.module.0", norms_.emplace_back(width));
  child("fc.0.module.1", output_.emplace(width, facts.classes, /*bias=*/false));
}

/// (N, F, T, 1) -> (frames, features). Replaces `lengths` by the lengths after the convolutions.
Variable DeepSpeech::convolve(Variable x, std::vector<int64_t>& lengths) const {
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    x = convolutions_[i](x);
    const int64_t positions = x.shape()[2];
    for (int64_t& length : lengths)
      length = (length + 2 * kTimePad - kTimeKernel) / time_stride(i) + 1;
    const std::vector<int64_t> rows = rows_of(lengths);
    x = clipped_relu(convolution_norms_[i](pack_frames(x, rows)), kClip);
    if (i + 1 < convolutions_.size()) x = unpack_frames(x, rows, positions);
  }
  x = swap_last(x);
  return reshape(x, {x.shape()[0], x.shape()[1] * x.shape()[2]});
}

Step DeepSpeech::forward(Context& context, const Batch& batch, const Carry&) {
  const Tensor& sound = batch.inputs[0];
  const int64_t samples = sound.shape()[0], features = sound.shape()[2];
  const auto* length = batch.lengths.data<int64_t>();
  std::vector<int64_t> lengths(length, length + samples);
  WISP_CHECK(std::is_sorted(lengths.rbegin(), lengths.rend()) && lengths.back() > 0 &&
                 lengths.front() <= sound.shape()[1],
             "deepspeech: lengths of ", lengths.front(), " to ", lengths.back(), " frames in ",
             sound.shape(), ", expected the longest first, and none empty");

  const Variable image = swap_last(Variable(context, sound));
  Variable x = convolve(reshape(image, {samples, features, sound.shape()[1], 1}), lengths);
  const std::vector<int64_t> rows = rows_of(lengths);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0) x = norms_[i - 1](x);
    const Variable both = layers_[i](x, rows).y;
    x = add(columns(both, 0, options_.units), columns(both, options_.units, 2 * options_.units));
  }
  const Variable logits = (*output_)(norms_.back()(x), {.wide = true});

  Step step;
  step.loss = ctc_loss(logits, rows, batch.targets);
  step.output = reshape(unpack_frames(reshape(logits, {logits.shape()[0], 1, logits.shape()[1]}),
                                      rows, lengths.front()),
                        {samples, lengths.front(), logits.shape()[1]});
  step.lengths = Tensor({samples}, DType::i64);
  std::copy(lengths.begin(), lengths.end(), step.lengths.data<int64_t>());
  return step;
}

std::vector<Metric> DeepSpeech::metrics() const {
  return {{.name = "wer", .percent = true, .lower_is_better = true},
          {.name = "cer", .percent = true, .lower_is_better = true},
          {.name = "blank",
           .percent = true,
           .lower_is_better = true,
           .alarm = Alarm{.above = 0.99,
                          .epochs = 5,
                          .meaning = "of the frames say nothing, epoch after epoch; the model has "
                                     "learned no letter: a lower rate, or shorter utterances?"}},
          {.name = "too_short",
           .percent = true,
           .lower_is_better = true,
           .alarm = Alarm{.meaning = "of the texts have more letters than their utterances have "
                                     "frames for; they teach nothing"}}};
}

void DeepSpeech::measure(const Step& step, const Batch& batch, const Tensor& sums) const {
  const auto* length = step.lengths.data<int64_t>();
  const std::vector<int64_t> rows = rows_of({length, length + step.lengths.numel()});
  const Shape& shape = step.output.shape();
  const Variable logits =
      pack_frames(reshape(step.output, {shape[0], 1, shape[1], shape[2]}), rows);
  const Variable frames = reshape(logits, {logits.shape()[0], shape[2]});
  count_edits(frames, rows, batch.targets, space_, sums.rows(0, 3));
  count_too_short(frames, rows, batch.targets, sums.rows(3, 4).reshape({2}));
}

}  // namespace wisp
