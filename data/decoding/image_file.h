// Reading of photos and writing of PNG files; a build without OpenCV throws Error. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"

namespace wisp {

/// The most bytes of a photo's file that are read.
constexpr int64_t kMostFileBytes = int64_t{1} << 30;

/// Reads a JPEG, PNG or WebP file as (H, W, C) u8: RGB for C = 3, grey for C = 1. Turns it by its
/// EXIF orientation and drops alpha. Throws Error with the path for a file that is missing, another
/// format, truncated, damaged, or too large. Wrong bits in the compressed data of a JPEG are not
/// found: libjpeg decodes them to some picture and may complain to stderr.
Tensor read_image(const std::string& path, int64_t channels);

/// Writes (H, W, C) u8, C = 1 or 3, as PNG. Throws Error with the path if it cannot (a full disk),
/// and for a name that does not end in .png.
void write_image(const std::string& path, const Tensor& image);

}  // namespace wisp
