// Pictures in files: photos to learn from, PNG to look at. Reading and writing pictures needs
// OpenCV; a build without it throws Error. Any thread may call.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"

namespace wisp {

/// Reads a photo: JPEG, PNG or WebP. Returns (H, W, C) u8, RGB for C = 3, grey for C = 1. Turned as
/// its EXIF orientation says, alpha dropped. Throws Error with the path for a file that is missing,
/// no such picture, cut off or damaged, or too large. Wrong bits within the compressed data of a
/// JPEG are not found: the picture is what libjpeg makes of them, which it may tell on stderr.
Tensor read_image(const std::string& path, int64_t channels);

/// Writes (H, W, C) u8, C as above, as PNG. Throws Error with the path (a full disk), and for a
/// name that does not end in .png.
void write_image(const std::string& path, const Tensor& image);

}  // namespace wisp
