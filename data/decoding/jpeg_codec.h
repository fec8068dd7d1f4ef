// Decoding of a JPEG's region by libjpeg-turbo. Without it decode_jpeg() throws Error. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/tensor/tensor.h"
#include "data/decoding/image_view.h"

namespace wisp {

/// Decoded pixels, and what libjpeg complained about.
struct DecodedImage {
  Tensor pixels;          // (H, W, 3) u8, RGB
  std::string complaint;  // pixels that are lost, and libjpeg went on; empty: none
};

/// Whether this build has libjpeg-turbo.
bool has_jpeg_codec();

/// Decodes `region`: its pixels have the bits of the whole picture's. Grey becomes RGB, and so does
/// CMYK, inverted as Adobe stores it, with Pillow's arithmetic. The EXIF orientation is ignored.
/// Damage outside of the region may go unseen.
///
/// With `shrink` 2, 4 or 8 the discrete cosine transform makes a picture so many times smaller, its
/// sides rounded up, and `region` is one of the smaller picture.
///
/// Throws Error for bytes that libjpeg refuses, and for a region outside of the picture.
DecodedImage decode_jpeg(std::string_view bytes, const Region& region, int64_t shrink = 1);

}  // namespace wisp
