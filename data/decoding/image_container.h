// The structure of a picture's file around its compressed data: format, size and orientation, told
// by content, and whether it is whole. It is read before decoding, because decoders accept
// truncated files and only complain to stderr. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wisp {

enum class ImageFormat { jpeg, png, webp, ppm };

struct ImageHeader {
  ImageFormat format = ImageFormat::jpeg;
  int64_t height = 0, width = 0;
};

/// The most pixels of a picture that is read, 2^27: 400 MB in RGB.
constexpr int64_t kMostPixels = int64_t{1} << 27;

/// The most scans of a JPEG. A file of a kilobyte may have thousands, each of all pixels.
constexpr int kMostScans = 500;

/// Reads the header. Throws Error for an empty file, for another format, for a header that is cut
/// off or is not the first part of a PNG, for a size of 0, and for more than kMostPixels. Sources:
/// ITU-T T.81, annex B.2.2; PNG (third edition), section 11.2.1; RFC 9649, section 2;
/// read_ppm_header().
ImageHeader read_image_header(std::string_view bytes);

/// The EXIF orientation of a WebP file, 1 to 8. Returns 1 (not turned) if the file has no readable
/// orientation, and for other formats, which OpenCV turns itself. Sources: Google's "WebP Container
/// Specification", Exif 2.3, section 4.6.
int webp_orientation(std::string_view bytes);

/// Checks a file and returns its bytes for a decoder. Removes the chunks of a PNG that affect
/// neither its look nor its orientation. Throws Error for a file that is no JPEG, PNG or WebP, that
/// ends too early, that has more than kMostScans, or a PNG that does not begin with its header or
/// has a wrong checksum in a chunk that stays. Sources: ITU-T T.81,
/// annex B; PNG (third edition), section 5; RFC 9649, section 2.3.
std::string checked_container(std::string bytes);

}  // namespace wisp
