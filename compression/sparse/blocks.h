// Blocks of consecutive elements of a field, across its slices. Host arithmetic; any thread.
#pragma once

#include "compression/sparse/select.h"

namespace wisp {

struct Blocks {
  int64_t size = 0;  // elements of a block; a shorter field is one block
  int64_t count = 0;
  int64_t kept = 0;

  Blocks(const Field& field, int64_t block_size, double ratio)
      : size(std::min(block_size, field.numel)),
        count((field.numel + size - 1) / size),
        kept(kept_count(ratio, count)) {}
};

/// The part of a field's blocks that lies in one slice.
struct BlockPart {
  int64_t size;        // elements of a block
  int64_t begin, end;  // field positions of the slice
  int64_t shift;       // arena index - field position

  /// Field positions [from(block), to(block)) of a block in the slice; empty unless to is larger.
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

/// The scores of each field's blocks, for select_of_arrays(). Equal scores are ordered at random,
/// equally on all ranks.
inline auto scores_of(const UnitSpec& spec, const StepInfo& info, int64_t block_size) {
  return [&, block_size](int64_t f) {
    const Field& field = spec.fields[static_cast<size_t>(f)];
    const Blocks blocks(field, block_size, info.ratio);
    return SelectArray{blocks.count, blocks.kept,
                       Philox(info.seed, static_cast<uint64_t>(info.step), field.key)};
  };
}

}  // namespace wisp
