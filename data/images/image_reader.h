// A reader of photos in the size and normalisation that a model's facts name. Any thread.
#pragma once

#include <string>

#include "core/facts.h"
#include "data/images/augment.h"

namespace wisp {

class ImageReader {
 public:
  /// Throws Error unless the facts describe images with a normalisation.
  ImageReader(const Facts& facts, DType compute);

  /// The shape of an image: (H, W, C).
  const Shape& shape() const { return shape_; }
  /// Reads a photo (read_image) and writes its centre, scaled (fit_image) and normalised, to
  /// `image`, which has shape() and the compute dtype. Throws Error with the file's name.
  void read(const std::string& file, const Tensor& image) const;

 private:
  Shape shape_;
  Normalizer normalizer_;
};

}  // namespace wisp
