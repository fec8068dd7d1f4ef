#include "data/decoding/image_file.h"

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "core/io/output_file.h"
#include "data/decoding/image_codec.h"
#include "data/decoding/image_container.h"

namespace wisp {

Tensor read_image(const std::string& path, int64_t channels) {
  WISP_CHECK(channels == 1 || channels == 3, "read_image: ", channels,
             " channels, expected 1 (grey) or 3 (RGB)");
  return naming(path, [&] {
    return decode_image(checked_container(read_whole_file(path, kMostFileBytes)), channels,
                        Orientation::applied);
  });
}

void write_image(const std::string& path, const Tensor& image) {
  WISP_CHECK(path.ends_with(".png"), "write_image: ", path, ", expected a name that ends in .png");
  const Shape& shape = image.shape();
  WISP_CHECK(image.dtype() == DType::u8 && shape.rank() == 3 && (shape[2] == 1 || shape[2] == 3) &&
                 shape.numel() > 0,
             "write_image: ", path, ": the picture is ", shape, " ", name_of(image.dtype()),
             ", expected (H, W, 1) or (H, W, 3) u8");
  write_file(path, encode_png(image));
}

}  // namespace wisp
