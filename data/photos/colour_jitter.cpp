#include "data/photos/colour_jitter.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/random.h"

namespace wisp {
namespace {

// indices of draws; they differ from other draws with the same key
constexpr uint64_t kOrderIndex = 0x6f726472, kFactorIndex = 0x66616374, kLightIndex = 0x6c696768;

/// The luma of a pixel: 0.299, 0.587 and 0.114 of red, green and blue, in 16 bits.
int grey_of(const uint8_t* pixel) {
  return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16;
}

/// Blends each value with a dull one.
void blend_row(const uint8_t* dull, int64_t count, float factor, uint8_t* __restrict row) {
  for (int64_t i = 0; i < count; ++i) row[i] = blended(dull[i], row[i], factor);
}

/// Blends all values with one.
void blend(const Tensor& image, int dull, float factor) {
  std::array<uint8_t, 256> table{};
  for (int value = 0; value < 256; ++value)
    table[static_cast<size_t>(value)] = blended(dull, value, factor);
  const std::span values(image.data<uint8_t>(), static_cast<size_t>(image.numel()));
  for (uint8_t& value : values) value = table[value];
}

/// The mean of the picture in grey, rounded.
int mean_grey(const Tensor& image) {
  const int64_t pixels = image.numel() / 3;
  const uint8_t* pixel = image.data<uint8_t>();
  int64_t sum = 0;
  for (int64_t i = 0; i < pixels; ++i) sum += grey_of(pixel + 3 * i);
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(pixels) + 0.5);
}

/// One of the changes, its strength, and the index of its draw.
struct Change {
  void (*apply)(const Tensor& image, float factor);
  double strength;
  uint64_t index;
};

}  // namespace

void check(const ColourJitter& strengths) {
  for (const double strength : {strengths.brightness, strengths.contrast, strengths.saturation})
    WISP_CHECK(strength >= 0 && std::isfinite(strength), "colour jitter: a strength is ", strength,
               ", expected 0 or more");
}

void check_picture(const Tensor& image, const char* what) {
  WISP_CHECK(image.dtype() == DType::u8 && image.shape().rank() == 3 && image.shape()[2] == 3 &&
                 image.numel() > 0,
             what, ": the picture is ", image.shape(), " ", name_of(image.dtype()),
             ", expected (H, W, 3) u8");
}

uint8_t blended(int dull, int value, float factor) {
  const float mixed = static_cast<float>(dull) + factor * static_cast<float>(value - dull);
  const float least = mixed < 0.0f ? 0.0f : mixed;  // a form that vectorises
  return static_cast<uint8_t>(least > 255.0f ? 255.0f : least);
}

void change_brightness(const Tensor& image, float factor) { blend(image, 0, factor); }

void change_contrast(const Tensor& image, float factor) { blend(image, mean_grey(image), factor); }

void change_saturation(const Tensor& image, float factor) {
  const int64_t rows = image.shape()[0], pixels = image.shape()[1];
  std::vector<uint8_t> grey(static_cast<size_t>(3 * pixels));  // a row, so that loops vectorise
  uint8_t* row = image.data<uint8_t>();
  for (int64_t y = 0; y < rows; ++y, row += 3 * pixels) {
    for (int64_t x = 0; x < pixels; ++x)
      std::fill_n(grey.data() + 3 * x, 3, static_cast<uint8_t>(grey_of(row + 3 * x)));
    blend_row(grey.data(), 3 * pixels, factor, row);
  }
}

void jitter_colours(const Tensor& image, const ColourJitter& strengths, const SampleKey& key) {
  check_picture(image, "colour jitter");
  check(strengths);
  const Philox philox = key.philox();
  std::array<Change, 3> changes{{{change_brightness, strengths.brightness, kFactorIndex},
                                 {change_contrast, strengths.contrast, kFactorIndex + 1},
                                 {change_saturation, strengths.saturation, kFactorIndex + 2}}};
  for (uint32_t i = 2; i > 0; --i)
    std::swap(changes[i], changes[philox.below(kOrderIndex + i, i + 1)]);
  for (const Change& change : changes) {
    if (change.strength == 0) continue;
    const double low = std::max(0.0, 1 - change.strength), high = 1 + change.strength;
    change.apply(image, static_cast<float>(low + (high - low) * philox.uniform(change.index)));
  }
}

std::array<double, 3> lighting_noise(double strength, const SampleKey& key) {
  constexpr double kValues[3] = {0.2175, 0.0188, 0.0045};  // of pixels in [0, 1]
  constexpr double kVectors[3][3] = {                      // (channel, component)
                                     {-0.5675, 0.7192, 0.4009},
                                     {-0.5808, -0.0045, -0.8140},
                                     {-0.5836, -0.6948, 0.4203}};
  WISP_CHECK(strength >= 0 && std::isfinite(strength), "lighting noise: the strength is ", strength,
             ", expected 0 or more");
  const Philox philox = key.philox();
  std::array<double, 3> noise{};
  for (uint64_t k = 0; k < 3; ++k) {
    const double weight = strength * normal(philox, kLightIndex + k) * kValues[k] * 255;
    for (size_t c = 0; c < 3; ++c) noise[c] += weight * kVectors[c][k];
  }
  return noise;
}

}  // namespace wisp
