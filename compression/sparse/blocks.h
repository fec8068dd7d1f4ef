// A field cut into blocks of consecutive elements, over its slices: their norms, and what is kept.
#pragma once

#include "compression/code.h"
#include "compression/sparse/select.h"
#include "core/loops/parallel.h"

namespace wisp {

struct Blocks {
  int64_t size = 0;  // elements; a field shorter than a block is one of its own size
  int64_t count = 0;
  int64_t kept = 0;

  Blocks(const Field& field, int64_t block_size, double ratio)
      : size(std::min(block_size, field.numel)),
        count((field.numel + size - 1) / size),
        kept(kept_count(ratio, count)) {}
  /// Blocks as elements, the first one at `offset`.
  Slice as_slice(int64_t offset) const { return {offset, count}; }
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

/// The part's share of each block's score, in lanes; the part where a block begins comes first.
template <bool kTake>
struct AddBlockScores {
  Source source;
  BlockPart part;
  bool squares;
  int64_t first;  // block
  float* score;
  WISP_HD float term(int64_t i) const {
    const float a = kTake ? source.take(i) : source.peek(i);
    return squares ? a * a : float_from_bits(magnitude_bits(a));
  }
  WISP_HD void operator()(int64_t i) const {
    constexpr int kLanes = parallel::kLanes;
    const int64_t block = first + i;
    int64_t at = part.from(block) + part.shift;
    const int64_t to = part.to(block) + part.shift;
    float lane[kLanes] = {};
    for (; at + kLanes <= to; at += kLanes)
      for (int j = 0; j < kLanes; ++j) lane[j] += term(at + j);
    for (int j = 0; at + j < to; ++j) lane[j] += term(at + j);
    for (int width = kLanes / 2; width > 0; width /= 2)
      for (int j = 0; j < width; ++j) lane[j] += lane[j + width];
    const bool begins = part.begin <= block * part.size;
    score[block] = begins ? lane[0] : score[block] + lane[0];
  }
};

/// score[b] = sum of |a| over block b, or of a^2; with kTake by the source's one take(), else by
/// peek(). A block's sum depends on how slices cut it, but on nothing else.
template <bool kTake>
void score_blocks(const Stream& stream, const Field& field, const Blocks& blocks,
                  const Source& source, bool squares, float* score) {
  each_part(field, blocks, [&](const BlockPart& part) {
    const int64_t first = part.begin / blocks.size;
    const int64_t last = (part.end - 1) / blocks.size;
    parallel_for(stream, last - first + 1,
                 AddBlockScores<kTake>{source, part, squares, first, score});
  });
}

/// Bytes of scratch for the next.
inline int64_t select_blocks_bytes(const UnitSpec& spec, int64_t block_size, double ratio) {
  select::Sizes sizes;
  for (const Field& field : spec.fields) {
    const Blocks blocks(field, block_size, ratio);
    const Slice all = blocks.as_slice(0);
    sizes.add({&all, 1}, select::Extent(blocks.count, blocks.kept));
  }
  return layout_bytes<select::Scratch>(sizes);
}

/// Writes the ids of the blocks kept, ascending, field after field as scores are. All ranks draw
/// the same order of equal scores.
inline void select_blocks(const Stream& stream, const UnitSpec& spec, int64_t block_size,
                          const float* score, const StepInfo& info, uint32_t* ids,
                          std::byte* scratch) {
  Slice all{};  // of the field asked for last
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
