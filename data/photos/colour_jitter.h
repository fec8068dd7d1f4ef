// Random changes of a picture's colours: brightness, contrast and saturation of its pixels, and
// AlexNet's lighting noise. Draws depend on (seed, epoch, sample) alone. Any thread may call.
#pragma once

#include <array>

#include "core/tensor/tensor.h"
#include "data/decoding/image_view.h"

namespace wisp {

/// Strengths of the changes: s draws a factor uniform in [1 - s, 1 + s], at least 0; 0: no change.
struct ColourJitter {
  double brightness = 0;  // blends with black
  double contrast = 0;    // blends with the mean grey
  double saturation = 0;  // blends with the picture in grey
  bool operator==(const ColourJitter&) const = default;
};

/// Throws Error for a strength that is negative or no number.
void check(const ColourJitter& strengths);

/// Throws Error, naming `what`, unless the picture is (H, W, 3) u8.
void check_picture(const Tensor& image, const char* what);

/// The mixture of a value and one that lacks what the factor changes, in f32 as Pillow rounds it. A
/// factor above 1 leads away from `dull`.
uint8_t blended(int dull, int value, float factor);

/// The changes of `image`, (H, W, 3) u8, in place: it is blended with black, with its mean grey, or
/// with itself in grey. Factor 1 leaves the picture, 0 leaves only the other, and more than 1
/// exaggerates. Source: Pillow's ImageEnhance, whose bits they have.
void change_brightness(const Tensor& image, float factor);
void change_contrast(const Tensor& image, float factor);
void change_saturation(const Tensor& image, float factor);

/// Changes `image`, (H, W, 3) u8, in place, in a random order of the three changes. Throws
/// Error for another tensor. Source: torchvision's ColorJitter (here without hue).
void jitter_colours(const Tensor& image, const ColourJitter& strengths, const SampleKey& key);

/// AlexNet's lighting noise: numbers to add to red, green and blue in [0, 255]. The RGB vectors of
/// ImageNet's principal components are weighted with normal numbers of deviation `strength` (0.1 in
/// the paper) and with the components' eigenvalues. Source: Krizhevsky et al. 2012, section 4.1;
/// the components are those of fb.resnet.
std::array<double, 3> lighting_noise(double strength, const SampleKey& key);

}  // namespace wisp
