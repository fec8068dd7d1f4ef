// From u8 pixels to what a model reads: a shifted, perhaps mirrored window, normalised per channel.
// Pure functions; what is drawn depends on (seed, epoch, sample) alone, never on workers or
// threads.
#pragma once

#include <cstdint>

#include "data/images/image_set.h"

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

/// Writes images as (value - mean) / deviation, in f32, f64 or bf16.
class Normalizer {
 public:
  Normalizer(const ImageSet& set, DType dtype);

  /// Image `sample` of the set through `window`, to `out`, (H, W, C) of the dtype. Outside of the
  /// image it is 0, the mean. Source of the order (normalise, then pad): the fb.resnet recipe.
  void write(int64_t sample, const Window& window, std::byte* out) const;

 private:
  const ImageSet& set_;
  Tensor table_;  // (C, 256): what each pixel value becomes
};

}  // namespace wisp
