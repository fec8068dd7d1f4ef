// A wire of powers of two. Each sent element is one word: 1 sign bit, 3 bits d, and 28 bits of
// position in its field. It stands for +-2^(e - d), with e = floor(log2 of the field's largest
// magnitude). A unit's payload has 4 (2 fields - 1 + entries) bytes:
//   u32 counts[fields - 1]   words of each field but the last
//   f32 tops[fields]         2^e of each field, 0 if it has no word
//   u32 words[entries]       field after field, positions in cyclic order
// Numbers are rounded to the nearest power of two, at most 2^e. A number more than seven powers
// below 2^e, or below the normal numbers, is not sent. Used by the comm thread. Source: Tsuzuku
// et al. 2018, section 4.2 (the word; the rest is ours).
#pragma once

#include "compression/sparse/select.h"

namespace wisp {
namespace power_words {

constexpr int kPositionBits = 28;
constexpr int64_t kMostElements = int64_t{1} << kPositionBits;
constexpr uint32_t kMostBelow = 7;  // largest value of 3 bits
constexpr uint32_t kExponent = 0x7f800000u;

/// A field for kernels: the capacity of its list of candidates, and the index of its first
/// candidate among those of all fields.
struct FieldRow {
  int64_t capacity, entry;
};

/// A range of candidates: a slice, or one part of the slice in which the cyclic order begins.
using RangeRow = select::SliceRow;

/// Scratch for writing a unit's words. A field's list holds kept_count(ratio) candidates.
struct Lists {
  FieldRow* field;
  RangeRow* range;
  int64_t* listed;  // candidates of each field, also beyond the list's capacity
  uint32_t* top;    // magnitude bits of each field's largest candidate
  int64_t* words;   // sent words of each field
  int64_t* index;   // arena index of each candidate
  uint32_t* position;
  uint64_t* masks;
  int64_t* selected;

  Lists(Cursor& cursor, const UnitSpec& spec, double ratio);
};

/// Bytes of a unit's scratch, for writing or adding.
int64_t scratch_bytes(const UnitSpec& spec, double ratio);

/// Bytes of counts and tops.
inline int64_t front_bytes(const UnitSpec& spec) { return 4 * (2 * std::ssize(spec.fields) - 1); }
/// The most bytes of a payload. Throws Error for a field of more than 2^28 elements.
int64_t capacity(const UnitSpec& spec, double ratio);

/// Writes the rows of the lists. Returns the ranges for a selection that lists each field's
/// candidates in cyclic order from a drawn position.
SelectRanges<RangeRow> write_ranges(const Stream& stream, const UnitSpec& spec,
                                    const StepInfo& info, const Lists& lists);
/// Makes all lists empty.
void clear_lists(const Stream& stream, const UnitSpec& spec, const Lists& lists);

/// The candidates of a field.
template <class Source>
struct Candidates {
  Source source;
  const int64_t* index;
  int64_t count;

  Candidates() = default;
  WISP_HD Candidates(const Source& from, const Lists& lists, int64_t f) : source(from) {
    const FieldRow& row = lists.field[f];
    index = lists.index + row.entry;
    count = lists.listed[f] < row.capacity ? lists.listed[f] : row.capacity;
  }
  /// Exponent bits of a rounded candidate, at most those of `top`.
  WISP_HD uint32_t rounded(int64_t j, uint32_t top) const {
    const uint32_t magnitude = magnitude_bits(source.held(index[j]));
    if (magnitude < 0x800000u) return 0;
    const uint32_t nearest = (magnitude + 0x400000u) & kExponent;  // rounds up from 1.5
    return nearest < (top & kExponent) ? nearest : top & kExponent;
  }
  WISP_HD static uint32_t below(uint32_t exponent, uint32_t top) {
    return (top >> 23) - (exponent >> 23);
  }
  WISP_HD bool travels(int64_t j, uint32_t top) const {
    const uint32_t exponent = rounded(j, top);
    return exponent > 0 && below(exponent, top) <= kMostBelow;
  }

  // The largest magnitude, with the interface of parallel_reduce.
  using Value = uint32_t;
  WISP_HD uint32_t identity() const { return 0; }
  WISP_HD uint32_t map(int64_t j) const {
    const uint32_t magnitude = magnitude_bits(source.held(index[j]));
    return magnitude < kExponent ? magnitude : kExponent - 1;
  }
  WISP_HD uint32_t combine(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

template <class Source>
struct MeasureLists {
  struct Shared {};
  Source source;
  Lists lists;
  float* tops;
  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const Candidates<Source> candidates(source, lists, f);
    const uint32_t top = team.reduce(candidates.count, candidates);
    const int64_t words = team.scan(
        candidates.count, [&](int64_t j) { return int64_t{candidates.travels(j, top)}; },
        [](int64_t, int64_t) {});
    team.once([&] {
      lists.top[f] = top;
      lists.words[f] = words;
      tops[f] = words > 0 ? float_from_bits(top & kExponent) : 0.0f;
    });
  }
};

template <class Source>
struct WriteWords {
  struct Shared {};
  Source source;
  Lists lists;
  int64_t fields, front;
  uint32_t* counts;
  uint32_t* words;
  int64_t* used;
  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const Candidates<Source> candidates(source, lists, f);
    const uint32_t top = lists.top[f];
    const uint32_t* positions = lists.position + lists.field[f].entry;
    uint32_t* to =
        words + team.scan(
                    f, [&](int64_t g) { return lists.words[g]; }, [](int64_t, int64_t) {});
    const int64_t count = team.select(
        candidates.count, [&](int64_t j) { return candidates.travels(j, top); },
        [&](int64_t at, int64_t j) {
          const int64_t index = candidates.index[j];
          const uint32_t exponent = candidates.rounded(j, top);
          const uint32_t sign = float_bits(source.held(index)) & 0x80000000u;
          to[at] = sign | candidates.below(exponent, top) << kPositionBits | positions[j];
          source.sent(index, float_from_bits(sign | exponent));
        });
    team.once([&] {
      if (f + 1 < fields) {
        counts[f] = static_cast<uint32_t>(count);
      } else {
        *used = front + 4 * (to + count - words);
      }
    });
  }
};

/// Writes the payload of the listed candidates. Calls sent(i, value) for each one that is sent.
/// Source has held and sent, as in code.h.
template <class Source>
void write(const Stream& stream, const UnitSpec& spec, double ratio, const Lists& lists,
           const Source& source, const Outlet& outlet) {
  const auto fields = std::ssize(spec.fields);
  auto* counts = reinterpret_cast<uint32_t*>(outlet.data);
  auto* tops = reinterpret_cast<float*>(counts + fields - 1);
  const int64_t each = capacity(spec, ratio) / 4 / fields;
  parallel_teams(stream, fields, MeasureLists<Source>{source, lists, tops}, each);
  parallel_teams(stream, fields,
                 WriteWords<Source>{source, lists, fields, front_bytes(spec), counts,
                                    reinterpret_cast<uint32_t*>(tops + fields), outlet.used},
                 each);
}

/// Adds weight · the sum of the payloads to the unit's slices of the arena `into`.
void add(const Stream& stream, const UnitSpec& spec, double ratio,
         std::span<const Payload> payloads, float weight, const Tensor& into, std::byte* scratch);

}  // namespace power_words
}  // namespace wisp
