// A field cut into blocks of consecutive elements, over its slices. Host arithmetic, and what
// kernels need to find a block's elements.
#pragma once

#include "compression/select.h"

namespace wisp {

struct Blocks {
  int64_t size = 0;  // elements; a field shorter than a block is one of its own size
  int64_t count = 0;
  int64_t kept = 0;

  Blocks(const Field& field, int64_t block_size, double ratio)
      : size(std::min(block_size, field.numel)),
        count((field.numel + size - 1) / size),
        kept(kept_count(ratio, count)) {}
  /// Blocks as elements.
  Field as_field() const { return {.slices = {{0, count}}, .numel = count}; }
};

/// What of each block lies in one slice.
struct BlockPart {
  int64_t size;        // of a block
  int64_t begin, end;  // field positions of the slice
  int64_t shift;       // arena index - field position

  /// Field positions from(block) to to(block), if to is larger.
  WISP_HD int64_t from(int64_t block) const { return block * size < begin ? begin : block * size; }
  WISP_HD int64_t to(int64_t block) const {
    return (block + 1) * size > end ? end : (block + 1) * size;
  }
};

/// visit(part) for each slice, in order.
template <class Visit>
void each_part(const Field& field, const Blocks& blocks, const Visit& visit) {
  int64_t begin = 0;
  for (const Slice& slice : field.slices) {
    visit(BlockPart{blocks.size, begin, begin + slice.numel, slice.offset - begin});
    begin += slice.numel;
  }
}

}  // namespace wisp
