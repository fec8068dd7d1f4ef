// CRC-32C (Castagnoli polynomial): finds damaged bytes in checkpoints. Not against malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace wisp {

/// The checksum of what `before` is the checksum of (0: nothing), followed by these bytes.
uint32_t crc32c(const void* data, size_t bytes, uint32_t before = 0);
/// Eight hexadecimal digits.
std::string checksum_text(uint32_t checksum);

}  // namespace wisp
