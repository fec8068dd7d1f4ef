// RandAugment: a few changes of a picture, drawn from fourteen, all of one magnitude. Draws depend
// on (seed, epoch, sample) alone. Any thread may call.
#pragma once

#include "core/tensor/tensor.h"
#include "data/decoding/image_view.h"

namespace wisp {

struct RandAugment {
  int64_t changes = 0;    // number of changes; 0: none, 2 in the paper
  int64_t magnitude = 9;  // of all changes, 0 to 30
};

/// Throws Error for options out of range.
void check(const RandAugment& options);

/// Changes `image`, (H, W, 3) u8, in place: nothing, shear or shift along either axis, rotation,
/// brightness, saturation, contrast, sharpness, fewer bits, inversion of bright values, automatic
/// contrast, equalised histogram. Pixels from outside of the picture are black. Throws Error for
/// another tensor and for options out of range. Source: Cubuk et al. 2020, as torchvision's
/// RandAugment has it; each change has the bits of Pillow.
void rand_augment(const Tensor& image, const RandAugment& options, const SampleKey& key);

/// One of the fourteen changes, numbered from 0 in the order above. `sign` is -1 or 1; changes
/// without a direction ignore it. Throws Error for another number.
void change_image(const Tensor& image, int64_t change, int64_t magnitude, int sign);

}  // namespace wisp
