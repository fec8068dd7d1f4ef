// CRC-32C checksums (Castagnoli polynomial), which find damaged bytes in checkpoints. They do not
// detect tampering. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace wisp {

class RandomAccessFile;

/// The remainder of each byte by a CRC's polynomial of 32 bits, lowest bits first.
constexpr std::array<uint32_t, 256> crc_table(uint32_t polynomial) {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    table[byte] = byte;
    for (int bit = 0; bit < 8; ++bit)
      table[byte] = table[byte] >> 1 ^ (table[byte] & 1u ? polynomial : 0u);
  }
  return table;
}

/// The checksum of some bytes followed by these bytes. `before` is the checksum of the first ones
/// (0: none).
uint32_t crc32c(const void* data, size_t bytes, uint32_t before = 0);
/// The checksum of a file. Throws Error with its path if it cannot be read.
uint32_t crc32c(const RandomAccessFile& file);
/// The checksum as eight hexadecimal digits.
std::string checksum_text(uint32_t checksum);

}  // namespace wisp
