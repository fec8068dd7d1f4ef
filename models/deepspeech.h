// Deep Speech 2: convolutions over a spectrogram, bidirectional recurrent layers, and logits for
// each frame. Source: Amodei et al. 2016; names and details as in deepspeech.pytorch, version 3.
// One thread.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/rnn.h"
#include "models/model.h"

namespace wisp {

struct DeepSpeechOptions {
  int64_t convolutions = 2;  // 2 or 3
  bool conv_bias = true;
  RnnCell cell = RnnCell::gru;
  int64_t layers = 5, units = 800;
};

/// Inputs are spectrograms (N, T, F), the longest first, padded with zeros at their ends, and their
/// lengths. The amount of padding changes no result, not even in training, because norms see only
/// the frames of utterances.
class DeepSpeech final : public Model {
 public:
  DeepSpeech(const DeepSpeechOptions& options, const Facts& facts);

  /// The output is (N, T', classes) with T' = (longest length + 1) / 2, and the lengths of the
  /// outputs.
  Step forward(Context& context, const Batch& batch, const Carry& before) override;
  /// Word and character error rates of the best path, the share of its frames that are blank, and
  /// the share of texts that are too long for their frames.
  std::vector<Metric> metrics() const override;
  void measure(const Step& step, const Batch& batch, const Tensor& sums) const override;
  /// deepspeech.pytorch's names: "fc.0.module.0.weight" for "fc.0.module.0.gamma".
  std::vector<std::string> exchange_names(const std::string& name) const override {
    return {pytorch_name(name)};
  }

 private:
  Variable convolve(Variable x, std::vector<int64_t>& lengths) const;

  DeepSpeechOptions options_;
  int32_t space_ = 0;
  std::deque<Conv2d> convolutions_;
  std::deque<BatchNorm> convolution_norms_;  // one for each of convolutions_
  std::deque<BatchNorm>
      norms_;  // one before each recurrent layer after the first, one before the output
  std::deque<Rnn> layers_;
  std::optional<Linear> output_;
};

}  // namespace wisp
