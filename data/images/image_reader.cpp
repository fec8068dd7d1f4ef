#include "data/images/image_reader.h"

#include "core/error.h"
#include "data/images/fit_image.h"
#include "data/images/image_file.h"

namespace wisp {
namespace {

const Shape& image_of(const Facts& facts) {
  const Shape& shape = facts.image("the model");
  WISP_CHECK(!facts.inputs[0].normalization.mean.empty(),
             "the facts do not say how pixels are normalised, so that photos cannot be read");
  return shape;
}

}  // namespace

ImageReader::ImageReader(const Facts& facts, DType compute)
    : shape_(image_of(facts)), normalizer_(facts.inputs[0].normalization, compute) {}

void ImageReader::read(const std::string& file, const Tensor& image) const {
  normalizer_.write(fit_image(read_image(file, shape_[2]), shape_[0], shape_[1]), {}, image.raw());
}

}  // namespace wisp
