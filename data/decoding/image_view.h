// The geometry of crops: which part of a picture a model sees, and in which size. Pure functions;
// random draws depend on (seed, epoch, sample) alone. Any thread may call.
#pragma once

#include <cstdint>

#include "core/random.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// A rectangle of pixels.
struct Region {
  int64_t top = 0, left = 0, height = 0, width = 0;

  int64_t bottom() const { return top + height; }
  int64_t right() const { return left + width; }
  bool holds(const Region& other) const {
    return top <= other.top && left <= other.left && bottom() >= other.bottom() &&
           right() >= other.right();
  }
  bool operator==(const Region&) const = default;
};

/// A copy of a region, (H, W, 3) u8, of RGB pixels in rows of `width`.
Tensor cut_region(const void* pixels, int64_t width, const Region& region);

/// A part of a picture, scaled, of which a window is kept.
struct View {
  Region source;  // scaled part of the picture; pixels outside of it have no influence
  int64_t height = 0, width = 0;  // size that `source` is scaled to
  Region window;                  // kept part of the scaled source
  bool operator==(const View&) const = default;
};

/// The view of evaluation: the picture's shorter side becomes `side`, and the centre of `crop` x
/// `crop` pixels is kept. Throws Error unless side >= crop >= 1. Source: torchvision's Resize and
/// CenterCrop, whose roundings it has.
View evaluation_view(int64_t height, int64_t width, int64_t side, int64_t crop);

/// The view that is nearest to `view` in a picture made `shrink` times smaller. `height` and
/// `width` are the large picture's; the small one's are rounded up. Each side of the source moves
/// by at most half a pixel of the small picture, and the picture's own ends stay. Throws Error if
/// the source has fewer than `shrink` pixels on a side.
View shrunk(const View& view, int64_t height, int64_t width, int64_t shrink);

/// Limits of random_view().
struct RandomCrop {
  double least_area = 0.08, most_area = 1;             // share of the picture's area
  double least_aspect = 3. / 4, most_aspect = 4. / 3;  // width / height
};

/// The random resized crop of training, scaled to `size` x `size`. The area is uniform, the aspect
/// ratio log-uniform, the place uniform. After ten crops that do not fit, it is the largest centred
/// one. Source: Szegedy et al. 2015, section 6, as torchvision's RandomResizedCrop has it.
View random_view(int64_t height, int64_t width, int64_t size, const RandomCrop& limits,
                 const SampleKey& key);

}  // namespace wisp
