// CRC-32C checksums (Castagnoli polynomial), which find damaged bytes in checkpoints. They do not
// detect tampering. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace wisp {

/// The checksum of some bytes followed by these bytes. `before` is the checksum of the first ones
/// (0: none).
uint32_t crc32c(const void* data, size_t bytes, uint32_t before = 0);
/// The checksum as eight hexadecimal digits.
std::string checksum_text(uint32_t checksum);

}  // namespace wisp
