// A spectrogram of speech, the input of a speech model: the loudness of each frequency over time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/facts.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// A spectrogram of fixed options. Any thread may call.
class Spectrogram {
 public:
  /// Throws Error unless window and stride are whole numbers of samples, the stride is at most the
  /// window, and each mel band holds a frequency.
  explicit Spectrogram(const SpectrogramOptions& options = {});

  const SpectrogramOptions& options() const { return options_; }
  /// F: the mel bands, or window / 2 + 1 frequencies; 161 by default.
  int64_t features() const { return options_.mels > 0 ? options_.mels : bins(); }
  /// The fewest samples that compute() accepts, because half a window is mirrored at each end.
  int64_t least_samples() const { return window_ / 2 + 1; }
  /// T = 1 + samples / stride, or 1 + (samples - 1) / stride for an odd window.
  int64_t frames(int64_t samples) const { return 1 + (samples - window_ % 2) / stride_; }

  /// Computes the features (T, F) f32: log(1 + |STFT|), or log(1 + M |STFT|) with mel bands M,
  /// normalised by mean and deviation of the whole utterance (divisor T F - 1). They are 0 if the
  /// deviation is 0, as in silence. Throws Error for fewer than least_samples().
  ///
  /// Frame t is centred at sample t · stride, and the ends are mirrored: torch.stft with center,
  /// its periodic Hamming window and no scaling. Mel bands are triangles of height 1 at equal steps
  /// of 2595 log10(1 + f / 700) from 0 to rate / 2 (HTK), as in torchaudio's MelSpectrogram. Source
  /// of the features: Amodei et al. 2016, "Deep Speech 2", with log(1 + x) for log x.
  Tensor compute(std::span<const float> samples) const;

 private:
  /// A mel band: weights of the frequencies from index `first` on.
  struct Band {
    int64_t first;
    std::vector<float> weights;
  };

  int64_t bins() const { return window_ / 2 + 1; }
  void make_bands();

  SpectrogramOptions options_;
  int64_t window_, stride_;     // samples
  std::vector<float> hamming_;  // (window)
  std::vector<Band> bands_;     // (mels)
};

}  // namespace wisp
