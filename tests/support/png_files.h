// Parts of PNG files, for tests of decoders. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/io/checksum.h"
#include "tests/support/sound_files.h"

namespace wisp {

inline const std::string kPngSignature = "\x89PNG\r\n\x1a\n";

/// A chunk with its length and checksum.
inline std::string png_chunk(const std::string& type, const std::string& body) {
  constexpr auto kTable = crc_table(0xedb88320);
  uint32_t crc = 0xffffffffu;
  for (const char byte : type + body)
    crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return big_endian(body.size(), 4) + type + body + big_endian(~crc, 4);
}

/// The header's chunk of a picture of 8 bits in RGB.
inline std::string png_header(uint64_t height, uint64_t width) {
  return png_chunk("IHDR",
                   big_endian(width, 4) + big_endian(height, 4) + std::string("\x08\2\0\0\0", 5));
}

}  // namespace wisp
