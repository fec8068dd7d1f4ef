// The header of a picture's file: format and size, told by content. It is read before anything is
// decoded. Any thread may call.
#pragma once

#include <cstdint>
#include <string_view>

namespace wisp {

enum class ImageFormat { jpeg, png, webp, ppm };

struct ImageHeader {
  ImageFormat format = ImageFormat::jpeg;
  int64_t height = 0, width = 0;
};

/// The most pixels of a picture that is read, 2^27: 400 MB in RGB.
constexpr int64_t kMostPixels = int64_t{1} << 27;

/// Reads the header. Throws Error for an empty file, for another format, for a header that is cut
/// off, for a size of 0, and for more than kMostPixels. Sources: ITU-T T.81, annex B.2.2; PNG
/// (third edition), section 11.2.1; RFC 9649, section 2; read_ppm_header().
ImageHeader read_image_header(std::string_view bytes);

}  // namespace wisp
