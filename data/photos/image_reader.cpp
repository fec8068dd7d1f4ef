#include "data/photos/image_reader.h"

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "data/decoding/fit_image.h"
#include "data/decoding/image_file.h"
#include "data/decoding/photo.h"

namespace wisp {
namespace {

const Shape& image_of(const Facts& facts) {
  const Shape& shape = facts.image("the model");
  const int64_t channels = std::ssize(facts.inputs[0].normalization.mean);
  WISP_CHECK(channels > 0,
             "the facts do not say how pixels are normalised, so that photos cannot be read");
  WISP_CHECK(channels == shape[2] && (channels == 1 || channels == 3), "the model reads images ",
             shape, " with ", channels, " means, expected 1 channel (grey) or 3 (RGB)");
  return shape;
}

}  // namespace

ImageReader::ImageReader(const Facts& facts, DType compute)
    : shape_(image_of(facts)), normalizer_(facts.inputs[0].normalization, compute) {
  const Feed& feed = facts.inputs[0];
  if (feed.photo.side == 0) return;
  WISP_CHECK(shape_[0] == shape_[1], "the model reads photos as images ", shape_,
             ", expected equal height and width");
  photos_.emplace(
      PhotoOptions{
          .side = feed.photo.side, .size = shape_[0], .filter = filter_named(feed.photo.filter)},
      feed.normalization, compute);
}

void ImageReader::read(const std::string& file, const Tensor& image) const {
  if (photos_) {
    return naming(file, [&] {
      const std::string bytes = read_whole_file(file, kMostFileBytes);
      const std::string complaint = photos_->evaluate(Photo(bytes), image.raw());
      WISP_CHECK(complaint.empty(), complaint);
    });
  }
  normalizer_.write(fit_image(read_image(file, shape_[2]), shape_[0], shape_[1]), {}, image.raw());
}

}  // namespace wisp
