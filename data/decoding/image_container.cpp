#include "data/decoding/image_container.h"

#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/io/checksum.h"
#include "data/decoding/image_header.h"

namespace wisp {
namespace {

constexpr std::array<uint32_t, 256> kCrcTable = crc_table(0xedb88320);

/// Throws Error if `bytes` has fewer than `end` bytes.
void need(std::string_view bytes, size_t end, const char* part) {
  WISP_CHECK(end <= bytes.size(), "the file is cut off: it has ", bytes.size(), " bytes, and ",
             part, " ends at ", end, " or later");
}

/// Whether a decoder continues at this byte after ff: stuffing, a restart, or fill.
bool is_no_end(uint32_t marker) {
  return marker == 0 || marker == 0xff || (marker >= 0xd0 && marker <= 0xd7);
}

/// Follows the segments by their lengths up to the end marker.
void check_jpeg(std::string_view bytes) {
  constexpr uint32_t kEnd = 0xd9;
  size_t at = 2;
  while (true) {
    const size_t marker = bytes.find('\xff', at);
    WISP_CHECK(marker < bytes.size() - 1, "the file is cut off: its ", bytes.size(),
               " bytes have no end marker of a JPEG");
    const uint32_t kind = static_cast<uint8_t>(bytes[marker + 1]);
    if (kind == kEnd) return;
    at = marker + 1;
    if (is_no_end(kind) || kind == 1) continue;
    need(bytes, marker + 4, "a segment of a JPEG");
    at = marker + 2 + unsigned_in(bytes.substr(marker + 2, 2), std::endian::big);
    need(bytes, at, "a segment of a JPEG");
  }
}

uint32_t crc32(std::string_view bytes) {
  uint32_t value = 0xffffffffu;
  for (const char byte : bytes)
    value = value >> 8 ^ kCrcTable[(value ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~value;
}

/// Of the optional chunks only the orientation stays: libpng warns about old profiles.
bool decides_picture(std::string_view type) {
  return (type[0] >= 'A' && type[0] <= 'Z') || type == "eXIf";
}

std::string check_png(std::string_view bytes) {
  constexpr size_t kSignature = 8, kAround = 12;  // bytes of length, type and checksum
  std::string kept(bytes.substr(0, kSignature));
  for (size_t at = kSignature;;) {
    need(bytes, at + kAround, "a chunk of a PNG");
    const size_t length = unsigned_in(bytes.substr(at, 4), std::endian::big);
    need(bytes, at + kAround + length, "a chunk of a PNG");
    const std::string_view chunk = bytes.substr(at, kAround + length);
    const std::string_view type = chunk.substr(4, 4);
    if (decides_picture(type)) {
      const uint64_t checksum = unsigned_in(chunk.substr(8 + length), std::endian::big);
      WISP_CHECK(crc32(chunk.substr(4, 4 + length)) == checksum,
                 "the file is damaged: the checksum of the PNG chunk at byte ", at, " is wrong");
      kept += chunk;
    }
    if (type == "IEND") return kept;
    at += chunk.size();
  }
}

}  // namespace

std::string checked_container(std::string bytes) {
  const std::optional<ImageFormat> format = image_format(bytes);
  if (format == ImageFormat::png) return check_png(bytes);
  if (format == ImageFormat::jpeg) {
    check_jpeg(bytes);
  } else {
    WISP_CHECK(format == ImageFormat::webp, "the file is no picture; JPEG, PNG and WebP are read");
    const std::string_view size = std::string_view(bytes).substr(4, 4);
    need(bytes, 8 + unsigned_in(size, std::endian::little), "the WebP");
  }
  return bytes;
}

}  // namespace wisp
