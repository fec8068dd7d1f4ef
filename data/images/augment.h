// From u8 pixels to what a model reads: a shifted, perhaps mirrored window, normalised per channel.
// Pure functions; what is drawn depends on (seed, epoch, sample) alone, never on workers or
// threads.
#pragma once

#include <cstdint>

#include "core/facts.h"
#include "core/tensor.h"

namespace wisp {

/// A window of the image's own size, `down` rows below and `right` columns right of it, read from
/// right to left if `mirror`.
struct Window {
  int64_t down = 0;
  int64_t right = 0;
  bool mirror = false;
};

/// Shifts uniform in [-pad, pad] and a fair coin: the random crop of an image padded by `pad` on
/// each side, and the horizontal flip.
Window random_window(uint64_t seed, int64_t epoch, int64_t sample, int64_t pad);

/// Writes images, normalised, in f32, f64 or bf16.
class Normalizer {
 public:
  /// Throws Error unless each channel has a mean and a deviation above 0.
  Normalizer(Normalization normalization, DType dtype);

  /// `image`, (H, W, C) u8, through `window`, to `out`, (H, W, C) of the dtype. Outside of the
  /// image it is 0, the mean. Throws Error for other channels. Source of the order (normalise,
  /// then pad): the fb.resnet recipe.
  void write(const Tensor& image, const Window& window, std::byte* out) const;

  /// The way back, to the nearest pixel values: (H, W, C) u8 of what write() left in `image`,
  /// (1, H, W, C).
  Tensor picture(const Tensor& image) const;

 private:
  const Normalization normalization_;
  Tensor table_;  // (C, 256): what each pixel value becomes
};

}  // namespace wisp
