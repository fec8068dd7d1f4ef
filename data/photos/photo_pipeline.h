// The way of a photo into a model: crop, scaling, RandAugment, colours, flip, normalisation. Any
// thread may call; the bits depend on the photo and (seed, epoch, sample) alone.
#pragma once

#include <string>

#include "core/facts.h"
#include "data/decoding/photo.h"
#include "data/decoding/resample_image.h"
#include "data/images/augment.h"
#include "data/photos/colour_jitter.h"
#include "data/photos/rand_augment.h"

namespace wisp {

/// `shrink_first` first makes JPEGs 2, 4 or 8 times smaller by the discrete cosine transform, as
/// long as the scaled part stays at least as large as its image. It moves crops by up to half a
/// pixel of the smaller photo. In a mean of 14 photos the pixels then differ from Pillow's by 2 to
/// 5 of 255 levels, at edges by up to 100.
struct PhotoOptions {
  int64_t side = 256;  // shorter side in evaluation
  int64_t size = 224;  // height and width of the model's images
  Filter filter = Filter::bilinear;
  bool shrink_first = false;  // faster for large photos
  RandomCrop crop;            // training
  bool flip = true;           // training: mirrors every second image
  RandAugment changes;        // training
  ColourJitter jitter;        // training
  double lighting = 0;        // training: strength of the lighting noise
};

class PhotoPipeline {
 public:
  /// Throws Error for options out of range, and for a normalisation without 3 channels.
  PhotoPipeline(const PhotoOptions& options, const Normalization& normalization, DType compute);

  /// Writes the training image, (size, size, 3) of the compute type. Mirrors it last; torchvision's
  /// recipes mirror before RandAugment, whose mirrored changes are as frequent. Returns the
  /// decoder's complaint, empty if there is none. Throws Error like Photo::decode().
  std::string train(const Photo& photo, const SampleKey& key, std::byte* out) const;
  /// Writes the image of evaluation, otherwise like train().
  std::string evaluate(const Photo& photo, std::byte* out) const;
  /// A normalised image, (1, size, size, 3), as a picture for people, (size, size, 3) u8.
  Tensor picture(const Tensor& image) const { return normalizer_.picture(image); }

 private:
  const PhotoOptions options_;
  const Normalizer normalizer_;
};

}  // namespace wisp
