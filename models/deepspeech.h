// Deep Speech 2: convolutions over a spectrogram, recurrent layers both ways, and the labels of
// each frame. Source: Amodei et al. 2016; names and details as in deepspeech.pytorch, version 3.
// One thread.
#pragma once

#include <deque>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/rnn.h"
#include "models/model.h"

namespace wisp {

struct DeepSpeechOptions {
  int64_t convolutions = 2;  // 2, or 3
  bool conv_bias = true;
  RnnCell cell = RnnCell::gru;
  int64_t layers = 5, units = 800;
};

/// Inputs are spectrograms (N, T, F), the longest first, with their lengths and zeros behind their
/// ends. How many changes nothing, in training neither: norms see frames of utterances alone.
class DeepSpeech final : public Model {
 public:
  DeepSpeech(const DeepSpeechOptions& options, const Facts& facts);

  /// The output is (N, T', classes), T' = (T + 1) / 2, with the lengths of each.
  Step forward(Context& context, const Batch& batch, const Carry& before) override;
  /// Word and character error rates of the best path, the share of its frames that are blank, and
  /// that of the texts that are too long for their frames.
  std::vector<Metric> metrics() const override;
  void measure(const Step& step, const Batch& batch, const Tensor& sums) const override;
  /// deepspeech.pytorch's: "fc.0.module.0.weight" for "fc.0.module.0.gamma".
  std::vector<std::string> exchange_names(const std::string& name) const override;

 private:
  struct Convolution {
    Convolution(int in, int out, Axes kernel, const ConvOptions& options, bool bias);
    Conv2d conv;
    BatchNorm norm;
  };

  Variable convolve(Variable x, std::vector<int64_t>& lengths) const;

  DeepSpeechOptions options_;
  int32_t space_ = 0;
  std::deque<Convolution> convolutions_;
  std::deque<BatchNorm>
      norms_;  // before each recurrent layer but the first, and the last before the output
  std::deque<Rnn> layers_;
  std::unique_ptr<Linear> output_;
};

}  // namespace wisp
