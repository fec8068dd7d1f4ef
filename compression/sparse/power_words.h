// A wire of powers of two: each element that travels is one word of 1 sign bit, 3 bits d and 28
// bits position in its field, and stands for +-2^(e - d), e = floor(log2 of the field's largest). A
// unit's payload is
//   u32 counts[fields - 1]   words of each field but the last
//   f32 tops[fields]         2^e of each field, 0 if it has no word
//   u32 words[entries]       field after field, positions in cyclic order
// bytes = 4 (2 fields - 1 + entries). Numbers are rounded to the nearest power of two, at most 2^e;
// what is more than seven powers below 2^e, or below the normal numbers, does not travel.
// Source: Tsuzuku et al. 2018, section 4.2 (the word; the rest is ours).
#pragma once

#include "compression/sparse/select.h"

namespace wisp {
namespace power_words {

constexpr int kPositionBits = 28;
constexpr int64_t kMostElements = int64_t{1} << kPositionBits;
constexpr uint32_t kMostBelow = 7;  // what 3 bits hold
constexpr uint32_t kExponent = 0x7f800000u;

/// Device words of a unit under way.
struct Progress {
  int64_t entries;  // of the unit so far
  int64_t before;   // of the fields before
  int64_t listed;   // of the field: candidates, beyond the list's capacity until it is capped
  uint32_t top;     // of the field: magnitude bits of its largest candidate
};

/// The parts of a unit's scratch; a field's list holds kept_count(ratio) candidates.
struct Scratch {
  Progress* state;
  int64_t* first;   // [fields] first word of each field of a payload
  int64_t* counts;  // [fields] words of each field of a payload
  int64_t* index;   // of candidates, in the arena
  uint32_t* position;
  std::byte* masks;

  Scratch(Cursor& cursor, const UnitSpec& spec, double ratio);
};

/// Bytes of counts and tops.
inline int64_t front_bytes(const UnitSpec& spec) {
  return 4 * (2 * static_cast<int64_t>(spec.fields.size()) - 1);
}
/// The most bytes a payload can have. Throws Error for a field of more than 2^28 elements.
int64_t capacity(const UnitSpec& spec, double ratio);

template <class Source>
struct Largest {
  using Value = uint32_t;
  Source source;
  const int64_t* indices;
  const int64_t* listed;
  WISP_HD uint32_t identity() const { return 0; }
  WISP_HD uint32_t map(int64_t j) const {
    const uint32_t magnitude = j < *listed ? magnitude_bits(source.held(indices[j])) : 0;
    return magnitude < kExponent ? magnitude : kExponent - 1;
  }
  WISP_HD uint32_t combine(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

template <class Source>
struct WriteWords {
  Source source;
  const Progress* state;
  const int64_t* indices;
  const uint32_t* positions;
  uint32_t* words;
  /// Exponent bits of the rounded candidate.
  WISP_HD uint32_t rounded(int64_t j) const {
    const uint32_t magnitude = magnitude_bits(source.held(indices[j]));
    if (magnitude < 0x800000u) return 0;
    const uint32_t nearest = (magnitude + 0x400000u) & kExponent;  // up from 1.5 on
    const uint32_t top = state->top & kExponent;
    return nearest < top ? nearest : top;
  }
  WISP_HD uint32_t below(uint32_t exponent) const { return (state->top >> 23) - (exponent >> 23); }
  WISP_HD bool operator()(int64_t j) const {
    const uint32_t exponent = rounded(j);
    return exponent > 0 && below(exponent) <= kMostBelow;
  }
  WISP_HD void emit(int64_t at, int64_t j) const {
    const uint32_t exponent = rounded(j);
    const uint32_t sign = float_bits(source.held(indices[j])) & 0x80000000u;
    words[at] = sign | below(exponent) << kPositionBits | positions[j];
    source.sent(indices[j], float_from_bits(sign | exponent));
  }
};

void begin(const Stream& stream, const Scratch& scratch);
void cap_list(const Stream& stream, const Scratch& scratch, int64_t capacity);
/// Writes what stands in front of field `f`'s words, and empties the list.
void end_field(const Stream& stream, const Scratch& scratch, const UnitSpec& spec, size_t f,
               std::byte* payload);
void end(const Stream& stream, const Scratch& scratch, const UnitSpec& spec, int64_t* used);

/// Writes the words of a field's candidates; sent(i, value) is called for those that travel. Source
/// has held and sent, as in code.h.
template <class Source>
void write_field(const Stream& stream, const Scratch& scratch, const UnitSpec& spec,
                 int64_t capacity, const Source& source, std::byte* payload) {
  cap_list(stream, scratch, capacity);
  parallel_reduce(stream, capacity, Largest<Source>{source, scratch.index, &scratch.state->listed},
                  &scratch.state->top);
  auto* words = reinterpret_cast<uint32_t*>(payload + front_bytes(spec));
  parallel_select_counted(
      stream, &scratch.state->listed, capacity,
      WriteWords<Source>{source, scratch.state, scratch.index, scratch.position, words},
      &scratch.state->entries, scratch.masks);
}

/// Adds weight · payload to the unit's slices of the arena `into`.
void add(const Stream& stream, const UnitSpec& spec, double ratio, const Payload& payload,
         float weight, const Tensor& into, std::byte* scratch);

}  // namespace power_words
}  // namespace wisp
