#include "data/decoding/photo.h"

#include "core/base/error.h"
#include "data/decoding/image_codec.h"
#include "data/decoding/ppm.h"

namespace wisp {

DecodedImage Photo::decode(const Region& region, int64_t shrink) const {
  if (can_shrink()) return decode_jpeg(bytes_, region, shrink);
  WISP_CHECK(shrink == 1, "photo: only JPEGs can be shrunk, and only by libjpeg-turbo");
  WISP_CHECK(
      region.height >= 1 && region.width >= 1 && Region({0, 0, height(), width()}).holds(region),
      "photo: a region of ", region.height, " x ", region.width, " pixels at (", region.top, ", ",
      region.left, "), expected one within the picture's ", height(), " x ", width());
  if (header_.format == ImageFormat::ppm) return {decode_ppm(bytes_, region), {}};
  const Tensor whole =
      decode_image(checked_container(std::string(bytes_)), 3, Orientation::ignored);
  WISP_CHECK(whole.shape() == Shape({height(), width(), 3}), "the decoded picture is ",
             whole.shape(), ", its header promises ", height(), " x ", width(), " pixels");
  return {cut_region(whole.raw(), width(), region), {}};
}

}  // namespace wisp
