// Decoding and encoding of pictures by OpenCV; without it they throw MissingLibrary. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// The error of a build without a library that a file needs. The file itself may be sound.
class MissingLibrary : public Error {
 public:
  using Error::Error;
};

/// What becomes of the EXIF orientation: pixels are turned by it, or stay as they are stored.
enum class Orientation { applied, ignored };

/// Decodes a file to (H, W, C) u8, C = 1 (grey) or 3 (RGB). Throws Error like
/// read_image_header(), and if OpenCV cannot read it.
Tensor decode_image(std::string bytes, int64_t channels, Orientation orientation);

/// Encodes (H, W, C) u8 as the bytes of a PNG file.
std::string encode_png(const Tensor& image);
/// Encodes (H, W, 3) u8 as the bytes of a JPEG file, `quality` from 1 to 100.
std::string encode_jpeg(const Tensor& image, int quality);

}  // namespace wisp
