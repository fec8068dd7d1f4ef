#include "data/decoding/image_orientation.h"

#include <cstddef>
#include <cstdint>

namespace wisp {
namespace {

constexpr int kAsItLies = 1;

/// The number at `at`, or 0 beyond the end.
uint32_t number(std::string_view bytes, size_t at, size_t count, bool big_endian) {
  if (at > bytes.size() || bytes.size() - at < count) return 0;
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value = value << 8 | static_cast<uint8_t>(bytes[at + (big_endian ? i : count - 1 - i)]);
  return value;
}

/// The orientation in the first directory of a TIFF. A directory is a count, and entries of a tag,
/// a type, a count and a value.
int tiff_orientation(std::string_view tiff) {
  constexpr uint32_t kOrientation = 0x112, kShort = 3;
  constexpr size_t kEntry = 12;
  const bool big_endian = tiff.starts_with("MM");
  if (!big_endian && !tiff.starts_with("II")) return kAsItLies;
  const size_t directory = number(tiff, 4, 4, big_endian);
  const uint32_t entries = number(tiff, directory, 2, big_endian);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + i * kEntry;
    if (number(tiff, at, 2, big_endian) != kOrientation) continue;
    const uint32_t value = number(tiff, at + 8, 2, big_endian);
    const bool known = number(tiff, at + 2, 2, big_endian) == kShort && 1 <= value && value <= 8;
    return known ? static_cast<int>(value) : kAsItLies;
  }
  return kAsItLies;
}

}  // namespace

/// Chunks follow each other from byte 12 on. A chunk is a name, a size, that number of bytes, and a
/// padding byte if the size is odd.
int webp_orientation(std::string_view bytes) {
  constexpr std::string_view kPrefix("Exif\0\0",
                                     6);  // JPEG's prefix, which some programs keep
  constexpr size_t kHeader = 8;
  constexpr size_t kFirst = 12;
  if (bytes.size() < kFirst || !bytes.starts_with("RIFF") || bytes.substr(8, 4) != "WEBP")
    return kAsItLies;
  for (size_t at = kFirst; at + kHeader <= bytes.size();) {
    const size_t size = number(bytes, at + 4, 4, false);
    const std::string_view name = bytes.substr(at, 4);
    at += kHeader;
    if (name == "EXIF") {
      std::string_view body = bytes.substr(at, size);
      if (body.starts_with(kPrefix)) body.remove_prefix(kPrefix.size());
      return tiff_orientation(body);
    }
    at += size + size % 2;
  }
  return kAsItLies;
}

}  // namespace wisp
