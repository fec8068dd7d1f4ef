// A reader of photos in the size and normalisation that a model's facts name. Any thread.
#pragma once

#include <optional>
#include <string>

#include "core/facts.h"
#include "data/images/augment.h"
#include "data/photos/photo_pipeline.h"

namespace wisp {

class ImageReader {
 public:
  /// Throws Error unless the facts describe images with a normalisation.
  ImageReader(const Facts& facts, DType compute);

  /// The shape of an image: (H, W, C).
  const Shape& shape() const { return shape_; }
  /// Reads a photo and writes its centre, scaled and normalised, to `image`, which has shape() and
  /// the compute dtype. A model of photos gets the pixels of evaluation (PhotoPipeline), others
  /// those of read_image() and fit_image(). Throws Error with the file's name.
  void read(const std::string& file, const Tensor& image) const;

 private:
  Shape shape_;
  Normalizer normalizer_;
  std::optional<PhotoPipeline> photos_;
};

}  // namespace wisp
