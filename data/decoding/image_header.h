// The header of a picture's file: format, size and orientation, told by content. It is read before
// anything is decoded. Any thread may call.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace wisp {

enum class ImageFormat { jpeg, png, webp, ppm };
/// The format of which a file has the first bytes; none for another format.
std::optional<ImageFormat> image_format(std::string_view bytes);

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

/// The EXIF orientation of a WebP file, 1 to 8. Returns 1 (not turned) if the file has no readable
/// orientation, and for other formats, which OpenCV turns itself. Sources: Google's "WebP Container
/// Specification", Exif 2.3, section 4.6.
int webp_orientation(std::string_view bytes);

}  // namespace wisp
