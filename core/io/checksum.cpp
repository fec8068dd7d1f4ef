#include "core/io/checksum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/io/input_file.h"

namespace wisp {
namespace {

using Table = std::array<std::array<uint32_t, 256>, 8>;

/// [k][b]: the checksum of byte b followed by k zero bytes.
constexpr Table kCrcTable = [] {
  Table table{crc_table(0x82f63b78)};
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = table[k - 1][byte];
      table[k][byte] = (crc >> 8) ^ table[0][crc & 0xffu];
    }
  }
  return table;
}();

}  // namespace

uint32_t crc32c(const void* data, size_t bytes, uint32_t before) {
  const auto* next = static_cast<const unsigned char*>(data);
  uint32_t crc = ~before;
  for (; bytes >= 8; bytes -= 8, next += 8) {  // eight bytes per step, little-endian
    uint32_t word[2];
    std::memcpy(word, next, 8);
    word[0] ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kCrcTable[7 - i][(word[i / 4] >> (8 * (i % 4))) & 0xffu];
  }
  for (; bytes > 0; --bytes, ++next) crc = (crc >> 8) ^ kCrcTable[0][(crc ^ *next) & 0xffu];
  return ~crc;
}

uint32_t crc32c(const RandomAccessFile& file) {
  constexpr int64_t kBlock = int64_t{1} << 20;
  std::vector<char> block(static_cast<size_t>(std::min(kBlock, file.bytes())));
  uint32_t checksum = 0;
  for (int64_t at = 0; at < file.bytes(); at += kBlock) {
    const int64_t bytes = std::min(kBlock, file.bytes() - at);
    file.read(block.data(), bytes, at);
    checksum = crc32c(block.data(), static_cast<size_t>(bytes), checksum);
  }
  return checksum;
}

std::string checksum_text(uint32_t checksum) { return fmt::format("{:08x}", checksum); }

}  // namespace wisp
