#include "data/decoding/image_container.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/error.h"

namespace wisp {
namespace {

constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpeg = "\xff\xd8\xff";

uint32_t byte_at(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

uint32_t big_endian(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | byte_at(bytes, at + i);
  return value;
}

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
    const uint32_t kind = byte_at(bytes, marker + 1);
    if (kind == kEnd) return;
    at = marker + 1;
    if (is_no_end(kind) || kind == 1) continue;
    need(bytes, marker + 4, "a segment of a JPEG");
    at = marker + 2 + big_endian(bytes, marker + 2, 2);
    need(bytes, at, "a segment of a JPEG");
  }
}

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

uint32_t crc32(std::string_view bytes) {
  uint32_t value = 0xffffffffu;
  for (const char byte : bytes)
    value = value >> 8 ^ kCrcTable[(value ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~value;
}

/// Of the optional chunks only the orientation stays: libpng warns about some others, for example
/// old profiles.
bool decides_picture(std::string_view type) {
  return (type[0] >= 'A' && type[0] <= 'Z') || type == "eXIf";
}

std::string check_png(std::string_view bytes) {
  constexpr size_t kAround = 12;  // bytes of length, type and checksum
  std::string kept(kPng);
  for (size_t at = kPng.size();;) {
    need(bytes, at + kAround, "a chunk of a PNG");
    const size_t length = big_endian(bytes, at, 4);
    need(bytes, at + kAround + length, "a chunk of a PNG");
    const std::string_view chunk = bytes.substr(at, kAround + length);
    const std::string_view type = chunk.substr(4, 4);
    if (decides_picture(type)) {
      WISP_CHECK(crc32(chunk.substr(4, 4 + length)) == big_endian(chunk, 8 + length, 4),
                 "the file is damaged: the checksum of the PNG chunk at byte ", at, " is wrong");
      kept += chunk;
    }
    if (type == "IEND") return kept;
    at += chunk.size();
  }
}

void check_webp(std::string_view bytes) {
  uint32_t length = 0;  // little-endian
  for (size_t i = 4; i-- > 0;) length = length << 8 | byte_at(bytes, 4 + i);
  need(bytes, size_t{8} + length, "the WebP");
}

}  // namespace

std::string checked_container(std::string bytes) {
  const std::string_view view = bytes;
  if (view.starts_with(kPng)) return check_png(view);
  if (view.starts_with(kJpeg)) {
    check_jpeg(view);
  } else {
    WISP_CHECK(view.size() >= 12 && view.starts_with("RIFF") && view.substr(8, 4) == "WEBP",
               "the file is no picture; JPEG, PNG and WebP are read");
    check_webp(view);
  }
  return bytes;
}

}  // namespace wisp
