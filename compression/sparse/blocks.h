// Blocks of consecutive elements of a field, across its slices, and the selection of those with the
// largest scores. Host arithmetic and work on a stream; any thread.
#pragma once

#include "compression/code.h"
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
  /// The blocks as elements to select from; the first one is at `offset`.
  Slice as_slice(int64_t offset) const { return {offset, count}; }
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

/// Bytes of scratch for select_blocks().
inline int64_t select_blocks_bytes(const UnitSpec& spec, int64_t block_size, double ratio) {
  select::Sizes sizes;
  for (const Field& field : spec.fields) {
    const Blocks blocks(field, block_size, ratio);
    const Slice all = blocks.as_slice(0);
    sizes.add({&all, 1}, select::Extent(blocks.count, blocks.kept));
  }
  return layout_bytes<select::Scratch>(sizes);
}

/// Writes the ids of the selected blocks, ascending, field after field in the order of `score`.
/// Equal scores are ordered at random, equally on all ranks.
inline void select_blocks(const Stream& stream, const UnitSpec& spec, int64_t block_size,
                          const float* score, const StepInfo& info, uint32_t* ids,
                          std::byte* scratch) {
  Slice all{};  // blocks of the field passed last
  const auto from = [&](int64_t f) {
    const auto blocks_of = [&](int64_t g) {
      return Blocks(spec.fields[static_cast<size_t>(g)], block_size, info.ratio);
    };
    int64_t first = 0;
    for (int64_t g = 0; g < f; ++g) first += blocks_of(g).count;
    const Blocks blocks = blocks_of(f);
    all = blocks.as_slice(first);
    const Philox random(info.seed, static_cast<uint64_t>(info.step),
                        spec.fields[static_cast<size_t>(f)].key);
    return SelectFrom<Source>{{&all, 1}, {.gradient = score}, blocks.kept, random};
  };
  const auto fields =
      select::write_fields(stream, std::ssize(spec.fields), from, Selection::Kind::exact, scratch);
  select_entries(stream, fields, {.least = 0}, ids, nullptr);
}

}  // namespace wisp
