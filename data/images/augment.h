// Image augmentation: a shifted, perhaps mirrored window of u8 pixels, normalised per channel.
// Draws depend on (seed, epoch, sample) alone, never on workers or threads. Any thread.
#pragma once

#include <cstdint>
#include <span>

#include "core/facts.h"
#include "core/random.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// A window of the image's own size, `down` rows below and `right` columns right of it, read from
/// right to left if `mirror` is set.
struct Window {
  int64_t down = 0;
  int64_t right = 0;
  bool mirror = false;
};

constexpr int64_t kPad = 4;                    // Source: He et al. 2016, section 4.2
constexpr uint64_t kWindowIndex = 0x61756701;  // differs from other draws with the same key

/// Draws the random crop of an image padded by `pad` on each side, and the horizontal flip: shifts
/// uniform in [-pad, pad], and a fair coin.
WISP_HD inline Window random_window(const SampleKey& key, int64_t pad) {
  const Philox::Block block = key.philox().block(kWindowIndex);
  const auto count = static_cast<uint64_t>(2 * pad + 1);
  return {static_cast<int64_t>(block.word[0] * count >> 32) - pad,
          static_cast<int64_t>(block.word[1] * count >> 32) - pad, (block.word[2] >> 31) != 0};
}

/// The shape of images, and a table from each channel's pixel values to normalised values.
template <class T>
struct PixelFormat {
  int64_t height, width, channels;
  const T* table;  // (C, 256)

  WISP_HD int64_t pixels() const { return height * width; }
  WISP_HD int64_t numel() const { return pixels() * channels; }

  /// Row y of a window. Its pixel x is pixel `first + step * x` of `pixels` if that is in [0,
  /// width), else outside of the image.
  struct Row {
    const uint8_t* pixels;
    int64_t first, step, width;
  };
  WISP_HD Row row(const uint8_t* image, const Window& window, int64_t y) const {
    const int64_t row = y + window.down;
    const bool inside = row >= 0 && row < height;
    return {image + (inside ? row * width * channels : 0),
            window.right + (window.mirror ? width - 1 : 0), window.mirror ? -1 : 1,
            inside ? width : 0};
  }
  /// Writes the channels of pixel x of a row. Outside of the image it writes 0, the mean.
  WISP_HD void write(const Row& row, int64_t x, T* out) const {
    const int64_t column = row.first + row.step * x;
    if (static_cast<uint64_t>(column) < static_cast<uint64_t>(row.width)) {
      const uint8_t* pixel = row.pixels + column * channels;
      for (int64_t c = 0; c < channels; ++c) out[c] = table[c * 256 + pixel[c]];
    } else {
      for (int64_t c = 0; c < channels; ++c) out[c] = T{0};
    }
  }
};

/// A normaliser of images to f32, f64 or bf16.
class Normalizer {
 public:
  /// Throws Error unless each channel has a mean and a deviation above 0.
  Normalizer(Normalization normalization, DType dtype);

  /// Writes `image`, (H, W, C) u8, through `window` to `out`, (H, W, C) of the dtype. Pixels
  /// outside of the image are 0, the mean. Adds `light`, a number for each channel or nothing, to
  /// the pixels before it normalises them. Throws Error for another number of channels. Source of
  /// the order (normalise, then pad): the fb.resnet recipe.
  void write(const Tensor& image, const Window& window, std::byte* out,
             std::span<const double> light = {}) const;

  /// The normalised value of each channel's pixel values, (C, 256).
  const Tensor& table() const { return table_; }

  /// The inverse of write() to the nearest pixel values: (H, W, C) u8 of an image (1, H, W, C).
  Tensor picture(const Tensor& image) const;

 private:
  const Normalization normalization_;
  Tensor table_;
};

}  // namespace wisp
