#include "data/speech/spectrogram.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/real_fft.h"

namespace wisp {
namespace {

int64_t whole_samples(const char* what, int64_t ms, int64_t rate) {
  WISP_CHECK(0 < ms && ms <= 1000 && 0 < rate && rate <= 1'000'000, "spectrogram: a ", what, " of ",
             ms, " ms at a rate of ", rate, ", expected 1 to 1000 ms at 1 to 1000000");
  WISP_CHECK(ms * rate % 1000 == 0, "spectrogram: a ", what, " of ", ms, " ms at a rate of ", rate,
             " is no whole number of samples");
  return ms * rate / 1000;
}

double mel_of(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double hertz_of(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

/// The samples with `pad` more at each end, mirrored without repeating the end samples.
std::vector<float> mirrored(std::span<const float> samples, int64_t pad) {
  std::vector<float> padded;
  padded.reserve(samples.size() + 2 * static_cast<size_t>(pad));
  for (int64_t i = pad; i > 0; --i) padded.push_back(samples[static_cast<size_t>(i)]);
  padded.insert(padded.end(), samples.begin(), samples.end());
  for (int64_t i = 1; i <= pad; ++i)
    padded.push_back(samples[samples.size() - 1 - static_cast<size_t>(i)]);
  return padded;
}

void normalize(std::span<float> values) {
  double sum = 0;
  for (const float v : values) sum += v;
  const double mean = sum / static_cast<double>(values.size());
  double squares = 0;
  for (const float v : values) squares += (v - mean) * (v - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  const double scale = deviation > 0 ? 1 / deviation : 0;
  for (float& v : values) v = static_cast<float>((v - mean) * scale);
}

}  // namespace

Spectrogram::Spectrogram(const SpectrogramOptions& options)
    : options_(options),
      window_(whole_samples("window", options.window_ms, options.rate)),
      stride_(whole_samples("stride", options.stride_ms, options.rate)) {
  WISP_CHECK(2 <= window_ && stride_ <= window_, "spectrogram: a window of ", window_,
             " samples and a stride of ", stride_, ", expected 2 or more, and a stride within it");
  WISP_CHECK(0 <= options.mels && options.mels <= bins(), "spectrogram: ", options.mels,
             " mel bands, expected 0 (all frequencies) to ", bins());
  for (int64_t i = 0; i < window_; ++i)
    hamming_.push_back(
        static_cast<float>(0.54 - 0.46 * std::cos(2 * std::numbers::pi * static_cast<double>(i) /
                                                  static_cast<double>(window_))));
  if (options.mels > 0) make_bands();
}

void Spectrogram::make_bands() {
  const double nyquist = static_cast<double>(options_.rate) / 2;
  const double bin_hertz = static_cast<double>(options_.rate) / static_cast<double>(window_);
  const double step = mel_of(nyquist) / static_cast<double>(options_.mels + 1);
  for (int64_t m = 0; m < options_.mels; ++m) {
    const double low = hertz_of(step * static_cast<double>(m));
    const double middle = hertz_of(step * static_cast<double>(m + 1));
    const double high = hertz_of(step * static_cast<double>(m + 2));
    Band band{static_cast<int64_t>(low / bin_hertz) + 1, {}};
    for (int64_t k = band.first; k < bins(); ++k) {
      const double hertz = static_cast<double>(k) * bin_hertz;
      if (hertz >= high) break;
      band.weights.push_back(static_cast<float>(
          std::min((hertz - low) / (middle - low), (high - hertz) / (high - middle))));
    }
    WISP_CHECK(!band.weights.empty(), "spectrogram: of ", options_.mels, " mel bands, number ",
               m + 1, " lies between two frequencies of a window of ", options_.window_ms,
               " ms, expected fewer bands or a longer window");
    bands_.push_back(std::move(band));
  }
}

Tensor Spectrogram::compute(std::span<const float> samples) const {
  const int64_t count = std::ssize(samples);
  WISP_CHECK(count >= least_samples(), "spectrogram: ", count, " samples, expected ",
             least_samples(), " or more");
  const std::vector<float> padded = mirrored(samples, window_ / 2);
  const std::unique_ptr<RealFft> fft = make_cpu_fft();  // made once: its plan is slow
  const Stream stream = Stream::immediate();
  std::vector<float> frame(static_cast<size_t>(window_)), pairs(static_cast<size_t>(2 * bins())),
      magnitude(static_cast<size_t>(bins()));

  Tensor result({frames(count), features()}, DType::f32);
  float* out = result.data<float>();
  for (int64_t t = 0; t < frames(count); ++t, out += features()) {
    const float* from = padded.data() + t * stride_;
    std::transform(hamming_.begin(), hamming_.end(), from, frame.begin(), std::multiplies<>());
    fft->forward(stream, window_, frame.data(), pairs.data());
    for (size_t k = 0; k < magnitude.size(); ++k)
      magnitude[k] = std::sqrt(pairs[2 * k] * pairs[2 * k] + pairs[2 * k + 1] * pairs[2 * k + 1]);
    if (bands_.empty()) std::copy(magnitude.begin(), magnitude.end(), out);
    for (size_t m = 0; m < bands_.size(); ++m) {
      const Band& band = bands_[m];
      out[m] = std::inner_product(band.weights.begin(), band.weights.end(),
                                  magnitude.begin() + band.first, 0.0f);
    }
    std::transform(out, out + features(), out, [](float v) { return std::log1p(v); });
  }
  normalize({result.data<float>(), static_cast<size_t>(result.numel())});
  return result;
}

}  // namespace wisp
