// What OpenCV does for pictures; a build without it has functions that throw. Any thread may call.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"

namespace wisp {

/// The picture that the bytes of a file hold: (H, W, C) u8, C 1 (grey) or 3 (RGB), turned as its
/// EXIF orientation says. Throws Error for bytes that OpenCV cannot read.
Tensor decode_image(std::string bytes, int64_t channels);

/// (H, W, C) u8 as the bytes of a PNG file.
std::string encode_png(const Tensor& image);

}  // namespace wisp
