// The fields of a unit as a selection's kernels see them (select.h): a table in device memory with
// the sizes of each field's sample, list and result. Used by the comm thread.
#pragma once

#include <algorithm>
#include <span>

#include "compression/compressor.h"
#include "compression/cursor.h"
#include "core/loops/device_table.h"
#include "core/loops/select_ranges.h"
#include "core/random.h"

namespace wisp {

/// ceil(ratio · numel), at least 1 and at most numel. Rounding errors of the product do not count:
/// 0.001 of 1000 is 1.
int64_t kept_count(double ratio, int64_t numel);

/// The slices of a field to select from, in order.
using Slices = std::span<const Slice>;

/// The range of a field's entries in a list; device words.
struct Range {
  int64_t begin, count;
};

/// The magnitude of a number as an integer with the same order.
WISP_HD inline uint32_t magnitude_bits(float value) { return float_bits(value) & 0x7fffffffu; }

/// The rule that selects elements of a field.
struct Selection {
  enum class Kind { exact, sampled, threshold };

  Kind kind = Kind::exact;
  float threshold = 0.0f;            // least magnitude, for Kind::threshold
  const float* on_device = nullptr;  // or a threshold per field in device memory
  uint32_t least = 1;                // least magnitude_bits that can be selected; 0: zeros too

  static Selection largest(bool sampled) { return {.kind = sampled ? Kind::sampled : Kind::exact}; }
};

/// A field to select `k` elements from. `random` draws the sample and the order of equal
/// magnitudes. A Source has prefetch, peek, take and held, as in code.h.
template <class Source>
struct SelectFrom {
  Slices slices;
  Source source;
  int64_t k;
  Philox random;
};

/// An array to select its `k` largest numbers from; `random` as in SelectFrom.
struct SelectArray {
  int64_t numel, k;
  Philox random;
};

namespace select {

constexpr int64_t kCluster = 4;  // neighbours sampled together; one cache line serves them
constexpr int kAdaptations = 10;
constexpr int64_t kMostSource = 128;  // largest size of a Source, in bytes
constexpr int64_t kTile = 1024;       // list entries per team
constexpr int64_t kAlone = 8192;      // entries for which one team of a device is enough
constexpr int64_t kMostParts = 64;    // teams per field

WISP_HD inline int64_t tiles_of(int64_t entries) { return (entries + kTile - 1) / kTile; }

/// The number of a device's teams that share a list or sample of at most `entries` of one field.
inline int64_t most_parts(int64_t entries) {
  return entries <= kAlone ? 1 : std::min(tiles_of(entries), kMostParts);
}
/// most_parts() on a device; 1 on a CPU, where a part would be a pass of the same thread.
inline int64_t parts_of(const Stream& stream, int64_t entries) {
  return stream.device().is_cuda() ? most_parts(entries) : 1;
}

/// Neighbouring entries of a field's list or sample.
struct Section {
  int64_t from, to;

  WISP_HD int64_t size() const { return to - from; }
  /// The entries that are in `other` too.
  WISP_HD Section within(const Section& other) const {
    const int64_t first = from < other.from ? other.from : from;
    const int64_t end = to < other.to ? to : other.to;
    return {first, end < first ? first : end};
  }
};

/// The entries of one of the teams that share `entries`; at least kTile each, but for the last.
WISP_HD inline Section part_of(int64_t entries, int64_t part, int64_t parts) {
  if (parts == 1) return {0, entries};
  int64_t each = (entries + parts - 1) / parts;
  if (each < kTile) each = kTile;
  const int64_t from = part * each < entries ? part * each : entries;
  return {from, from + each < entries ? from + each : entries};
}

/// The sizes of a field's sample, list and result. Host arithmetic.
struct Extent {
  int64_t numel = 0;
  int64_t k = 0;
  int64_t capacity = 0;  // capacity of the list of candidates
  int64_t sample = 0;    // sampled elements; 0: no threshold, all are candidates
  int64_t rank = 0;      // the sample's rank-th largest magnitude is the threshold

  Extent(int64_t numel, int64_t k, Selection::Kind kind = Selection::Kind::exact);
};

/// Total order of a field's elements: by magnitude, then by cyclic distance from a drawn start.
struct Order {
  int64_t start = 0;
  int64_t numel = 0;
  WISP_HD uint64_t operator()(uint32_t magnitude, int64_t position) const {
    const int64_t distance = position - start + (position < start ? numel : 0);
    return static_cast<uint64_t>(magnitude) << 32 | (0xffffffffu - static_cast<uint64_t>(distance));
  }
};

/// Device words of a field's selection under way.
struct Progress {
  int64_t candidates;  // elements that passed the threshold, also beyond the list's capacity
  uint64_t bound;      // the threshold, `least` or more, in its upper half
  int64_t again;       // 1: the threshold was too high, and the list is made again
  uint32_t passing[kAdaptations + 2];  // number of elements that each adaptation adds
};

/// A field for kernels.
struct FieldRow {
  int64_t numel, k, capacity, sample, rank;
  int64_t first, stride;  // field position of the sample's first cluster; distance between clusters
  int64_t start;          // Order::start
  int64_t entry;          // index of its first candidate among those of all fields
  int64_t begin;          // index of its first selected element
  int64_t tile;           // index of its first tile of kTile selected elements
  int64_t slice, slices;  // index of its first slice, number of its slices

  WISP_HD Order order() const { return {start, numel}; }
};

struct SliceRow : SelectRange {
  int64_t field, offset, position;  // offset: in the arena; position: in the field
};

/// The fields of a unit in device memory.
template <class Source>
struct Fields {
  int64_t count, entries, tiles;
  int64_t samplers;  // teams that read a field's sample; 0: no field has one; 1: FindThreshold's
  int64_t readers;   // teams that read the magnitudes of a field's candidates; 1: Choose's
  const FieldRow* row;
  const Source* source;
  SelectRanges<SliceRow> slices;
  Progress* state;
  uint32_t* word;  // of each entry, with three meanings in turn: sampled(), index(), magnitude()
  uint32_t* positions;  // field positions of the candidates

  /// The magnitudes of a field's sample.
  WISP_HD uint32_t* sampled(const FieldRow& field) const { return word + field.entry; }
  /// The arena indices of its candidates. They take the place of the sample.
  WISP_HD uint32_t* index(const FieldRow& field) const { return word + field.entry; }
  /// The magnitudes of its candidates. They take the place of the indices.
  WISP_HD uint32_t* magnitude(const FieldRow& field) const { return word + field.entry; }
  /// The field positions of its candidates.
  WISP_HD uint32_t* position(const FieldRow& field) const { return positions + field.entry; }
  /// visit(slice) for each slice of a field, by all threads of a team.
  template <class Visit>
  WISP_HD void each_slice(const FieldRow& field, const Visit& visit) const {
    for (int64_t s = 0; s < field.slices; ++s) visit(slices.row[field.slice + s]);
  }
};

/// Sizes that determine the scratch of fields.
struct Sizes {
  int64_t fields = 0, slices = 0, chunks = 0, words = 0, entries = 0, tiles = 0;

  void add(Slices of_field, const Extent& extent);
};

/// Scratch of a selection.
struct Scratch {
  FieldRow* row;
  SliceRow* slice;
  std::byte* source;
  Progress* state;
  uint64_t* masks;
  int64_t* selected;
  uint32_t* word;
  uint32_t* position;

  Scratch(Cursor& cursor, const Sizes& sizes);
};

int64_t numel_of(Slices slices);
/// Writes the rows of a field's slices, which begin at `next`. each_range(visit) calls
/// visit(offset, position, numel) for each.
template <class EachRange>
void put_slices(TableWriter& table, int64_t field, const EachRange& each_range, Sizes& next) {
  const int64_t begin = next.chunks;
  int64_t end = begin;
  each_range([&](int64_t, int64_t, int64_t numel) { end += SelectRange::chunks(numel); });
  each_range([&](int64_t offset, int64_t position, int64_t numel) {
    table.put(SliceRow{{numel, next.chunks, next.words, begin, end}, field, offset, position});
    ++next.slices;
    next.chunks += SelectRange::chunks(numel);
    next.words += SelectRange::words(numel);
  });
}

/// Writes the rows of `count` fields, field(f) each, to `memory`, which has the layout Scratch.
/// Each of its passes calls field(f) once per field, in order.
template <class Field>
auto write_fields(const Stream& stream, int64_t count, const Field& field, Selection::Kind kind,
                  std::byte* memory) {
  using Source = decltype(field(int64_t{}).source);
  static_assert(sizeof(Source) <= kMostSource);
  Sizes sizes;
  int64_t numel = 0, most_sampled = 0, most_listed = 0;
  for (int64_t f = 0; f < count; ++f) {
    const auto from = field(f);
    const Extent extent(numel_of(from.slices), from.k, kind);
    sizes.add(from.slices, extent);
    most_sampled = std::max(most_sampled, extent.sample);
    most_listed = std::max(most_listed, extent.capacity);
    numel += extent.numel;
  }
  const auto scratch = lay_out<Scratch>(memory, sizes);
  TableWriter table(stream, scratch.row);
  Sizes next;
  int64_t begin = 0;
  for (int64_t f = 0; f < count; ++f) {
    const auto from = field(f);
    const Extent extent(numel_of(from.slices), from.k, kind);
    FieldRow row{extent.numel, extent.k, extent.capacity, extent.sample, extent.rank};
    if (extent.sample > 0) {
      row.stride = extent.numel / (extent.sample / kCluster);
      row.first = from.random.below(1, static_cast<uint32_t>(row.stride - kCluster + 1));
    }
    row.start = from.random.below(0, static_cast<uint32_t>(extent.numel));
    row.entry = next.entries;
    row.begin = begin;
    row.tile = next.tiles;
    row.slice = next.slices;
    row.slices = std::ssize(from.slices);
    table.put(row);
    next.add(from.slices, extent);
    begin += extent.k;
  }
  next = {};
  for (int64_t f = 0; f < count; ++f) {
    const auto each_range = [slices = field(f).slices](const auto& visit) {
      int64_t position = 0;
      for (const Slice& slice : slices) {
        visit(slice.offset, position, slice.numel);
        position += slice.numel;
      }
    };
    put_slices(table, f, each_range, next);
  }
  for (int64_t f = 0; f < count; ++f) table.put(field(f).source);
  table.finish();
  return Fields<Source>{
      count,
      sizes.entries,
      sizes.tiles,
      most_sampled > 0 ? parts_of(stream, most_sampled) : 0,
      parts_of(stream, most_listed),
      scratch.row,
      reinterpret_cast<const Source*>(scratch.source),
      {scratch.slice, sizes.slices, sizes.chunks, numel, scratch.masks, scratch.selected},
      scratch.state,
      scratch.word,
      scratch.position};
}
}  // namespace select
}  // namespace wisp
