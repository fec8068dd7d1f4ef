// The number of set bits in a word, computed alike on every device. Any thread.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace wisp {

WISP_HD inline int count_bits(uint32_t word) {
  word -= word >> 1 & 0x55555555u;
  word = (word & 0x33333333u) + (word >> 2 & 0x33333333u);
  return static_cast<int>((((word + (word >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24);
}

}  // namespace wisp
