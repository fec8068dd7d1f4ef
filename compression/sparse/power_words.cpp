#include "compression/sparse/power_words.h"

#include <algorithm>

#include "core/error.h"

namespace wisp::power_words {
namespace {

struct Begin {
  Progress* state;
  WISP_HD void operator()() const { *state = Progress{}; }
};

struct CapList {
  Progress* state;
  int64_t capacity;
  WISP_HD void operator()() const {
    if (state->listed > capacity) state->listed = capacity;
  }
};

struct EndField {
  Progress* state;
  float* top;
  uint32_t* count;  // null for the last field
  WISP_HD void operator()() const {
    const int64_t entries = state->entries - state->before;
    *top = entries > 0 ? float_from_bits(state->top & kExponent) : 0.0f;
    if (count) *count = static_cast<uint32_t>(entries);
    *state = {state->entries, state->entries, 0, 0};
  }
};

struct End {
  const Progress* state;
  int64_t front;
  int64_t* used;
  WISP_HD void operator()() const { *used = front + 4 * state->entries; }
};

/// Where each field's words begin; counts beyond the payload are cut.
struct Split {
  const uint32_t* stated;
  const float* top;
  int64_t fields, words;
  int64_t* first;
  int64_t* counts;
  Complaints complaints;
  WISP_HD void operator()() const {
    int64_t at = 0;
    for (int64_t f = 0; f < fields; ++f) {
      const int64_t left = words - at;
      const int64_t said = f + 1 < fields ? int64_t{stated[f]} : left;
      if (said > left) complaints.add(Wrong::count, f, said);
      first[f] = at;
      counts[f] = said < left ? said : left;
      at += counts[f];
      const uint32_t bits = float_bits(top[f]);
      if ((bits & ~kExponent) != 0 || bits == kExponent || (bits == 0) != (counts[f] == 0))
        complaints.add(Wrong::scale, f, 0);
    }
  }
};

WISP_HD inline int64_t position_of(uint32_t word) { return word & (kMostElements - 1); }

struct AddWords {
  const uint32_t* words;
  const int64_t* first;  // of the field
  const float* top;
  float weight;
  int64_t begin, end;  // field positions of the slice
  float* into;         // the slice
  int64_t field, numel;
  Complaints complaints;
  WISP_HD void operator()(int64_t j) const {
    const uint32_t* at = words + *first;
    const uint32_t word = at[j];
    const int64_t position = position_of(word);
    // in cyclic order, the way from the first word's position is longer for each
    const uint32_t before = j > 0 ? at[j - 1] - at[0] : 0;
    const bool behind = j == 0 || position_of(before) < position_of(word - at[0]);
    if (position >= numel || !behind) return complain(j, position);
    if (position < begin || end <= position) return;
    const uint32_t below = word >> kPositionBits & kMostBelow;
    const float value = *top * float_from_bits((word & 1u << 31) | (127 - below) << 23);
    into[position - begin] += weight * value;
  }

 private:
  WISP_HD void complain(int64_t j, int64_t position) const {
    complaints.add(position < numel ? Wrong::order : Wrong::position, field, j);
  }
};

struct Parts {
  const uint32_t* counts;
  const float* tops;
  const uint32_t* words;
  int64_t entries;

  Parts(const UnitSpec& spec, const Payload& payload)
      : counts(reinterpret_cast<const uint32_t*>(payload.data)),
        tops(reinterpret_cast<const float*>(counts + spec.fields.size() - 1)),
        words(reinterpret_cast<const uint32_t*>(tops + spec.fields.size())),
        entries((payload.bytes - front_bytes(spec)) / 4) {}
};

}  // namespace

Scratch::Scratch(Cursor& cursor, const UnitSpec& spec, double ratio) {
  const auto fields = static_cast<int64_t>(spec.fields.size());
  int64_t longest = 0;
  for (const Field& field : spec.fields) longest = std::max(longest, field.numel);
  const int64_t most = kept_count(ratio, longest);
  state = cursor.take<Progress>(1);
  first = cursor.take<int64_t>(fields);
  counts = cursor.take<int64_t>(fields);
  index = cursor.take<int64_t>(most);
  position = cursor.take<uint32_t>(most);
  masks = cursor.take<std::byte>(select_scratch_bytes(longest));
}

int64_t capacity(const UnitSpec& spec, double ratio) {
  int64_t words = 0;
  for (const Field& field : spec.fields) {
    WISP_CHECK(field.numel <= kMostElements, "variance: a field has ", field.numel,
               " elements, its words hold positions below 2^28 = ", kMostElements,
               "; use a smaller compression.scope");
    words += kept_count(ratio, field.numel);
  }
  return front_bytes(spec) + 4 * words;
}

void begin(const Stream& stream, const Scratch& scratch) { run_once(stream, Begin{scratch.state}); }

void cap_list(const Stream& stream, const Scratch& scratch, int64_t capacity) {
  run_once(stream, CapList{scratch.state, capacity});
}

void end_field(const Stream& stream, const Scratch& scratch, const UnitSpec& spec, size_t f,
               std::byte* payload) {
  auto* counts = reinterpret_cast<uint32_t*>(payload);
  auto* tops = reinterpret_cast<float*>(counts + spec.fields.size() - 1);
  run_once(stream,
           EndField{scratch.state, tops + f, f + 1 < spec.fields.size() ? counts + f : nullptr});
}

void end(const Stream& stream, const Scratch& scratch, const UnitSpec& spec, int64_t* used) {
  run_once(stream, End{scratch.state, front_bytes(spec), used});
}

void add(const Stream& stream, const UnitSpec& spec, double ratio, const Payload& payload,
         float weight, const Tensor& into, std::byte* memory) {
  const int64_t least = front_bytes(spec);
  WISP_CHECK(
      least <= payload.bytes && payload.bytes <= capacity(spec, ratio) && payload.bytes % 4 == 0,
      "variance: the payload of rank ", payload.from, " has ", payload.bytes, " bytes, expected ",
      least, " and 4 per word, at most ", capacity(spec, ratio));
  const Parts parts(spec, payload);
  const auto scratch = lay_out<Scratch>(memory, spec, ratio);
  const auto fields = std::ssize(spec.fields);
  run_once(stream, Split{parts.counts, parts.tops, fields, parts.entries, scratch.first,
                         scratch.counts, payload.complaints()});
  for (int64_t f = 0; f < fields; ++f) {
    const Field& field = spec.fields[static_cast<size_t>(f)];
    int64_t begin = 0;
    for (const Slice& slice : field.slices) {
      const int64_t end = begin + slice.numel;
      parallel_for_counted(
          stream, scratch.counts + f, parts.entries,
          AddWords{parts.words, scratch.first + f, parts.tops + f, weight, begin, end,
                   into.data<float>() + slice.offset, f, field.numel, payload.complaints()});
      begin = end;
    }
  }
}

}  // namespace wisp::power_words
