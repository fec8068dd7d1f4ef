#include "compression/sparse/power_words.h"

#include <algorithm>

#include "compression/slices.h"
#include "compression/unit_rows.h"
#include "core/base/error.h"

namespace wisp::power_words {
namespace {

/// Scratch for adding words.
struct Adding {
  UnitRows rows;
  int64_t* first;  // index of each field's first word in a payload

  Adding(Cursor& cursor, const UnitSpec& spec)
      : rows(cursor, spec), first(cursor.take<int64_t>(std::ssize(spec.fields))) {}
};

/// Finds the first word of each field. Counts beyond the payload are cut.
struct Split {
  const uint32_t* stated;
  const float* top;
  int64_t fields, words;
  int64_t* first;
  Complaints complaints;
  WISP_HD void operator()() const {
    int64_t at = 0;
    for (int64_t f = 0; f < fields; ++f) {
      const int64_t left = words - at;
      const int64_t said = f + 1 < fields ? int64_t{stated[f]} : left;
      if (said > left) complaints.add(Wrong::count, f, said);
      const int64_t count = said < left ? said : left;
      first[f] = at;
      at += count;
      const uint32_t bits = float_bits(top[f]);
      if ((bits & ~kExponent) != 0 || bits == kExponent || (bits == 0) != (count == 0))
        complaints.add(Wrong::scale, f, 0);
    }
  }
};

WISP_HD inline int64_t position_of(uint32_t word) { return word & (kMostElements - 1); }

struct AddWords {
  Adding of;
  int64_t fields;
  const uint32_t* words;
  const float* tops;
  float weight;
  float* arena;
  Complaints complaints;
  WISP_HD void operator()(int64_t i) const {
    const int64_t f = row_of(i, fields, [this](int64_t g) { return of.first[g]; });
    const uint32_t* at = words + of.first[f];
    const int64_t j = i - of.first[f];
    const uint32_t word = at[j];
    const int64_t position = position_of(word);
    // In cyclic order, each word is farther from the first word's position than the one before.
    const uint32_t before = j > 0 ? at[j - 1] - at[0] : 0;
    const bool behind = j == 0 || position_of(before) < position_of(word - at[0]);
    const UnitRows::OfField field = of.rows.field[f];
    if (position >= field.numel) return complaints.add(Wrong::position, f, j);
    if (!behind) return complaints.add(Wrong::order, f, j);
    const uint32_t below = word >> kPositionBits & kMostBelow;
    const float value = tops[f] * float_from_bits((word & 1u << 31) | (127 - below) << 23);
    arena[position + of.rows.slice[of.rows.slice_of(field, position)].shift] += weight * value;
  }
};

}  // namespace

Lists::Lists(Cursor& cursor, const UnitSpec& spec, double ratio) {
  const auto fields = std::ssize(spec.fields);
  int64_t entries = 0, ranges = 0, chunks = 0, mask_words = 0;
  for (const Field& of : spec.fields) {
    entries += kept_count(ratio, of.numel);
    ranges += std::ssize(of.slices) + 1;  // one slice is cut in two
    ++chunks;
    ++mask_words;
    for (const Slice& slice : of.slices) {
      chunks += SelectRange::chunks(slice.numel);
      mask_words += SelectRange::words(slice.numel);
    }
  }
  field = cursor.take<FieldRow>(fields);
  range = cursor.take<RangeRow>(ranges);
  listed = cursor.take<int64_t>(fields);
  top = cursor.take<uint32_t>(fields);
  words = cursor.take<int64_t>(fields);
  index = cursor.take<int64_t>(entries);
  position = cursor.take<uint32_t>(entries);
  masks = cursor.take<uint64_t>(mask_words);
  selected = cursor.take<int64_t>(chunks);
}

int64_t scratch_bytes(const UnitSpec& spec, double ratio) {
  return std::max(layout_bytes<Lists>(spec, ratio), layout_bytes<Adding>(spec));
}

int64_t capacity(const UnitSpec& spec, double ratio) {
  for (const Field& field : spec.fields)
    WISP_CHECK(field.numel <= kMostElements, "variance: a field has ", field.numel,
               " elements, its words hold positions below 2^28 = ", kMostElements,
               "; use a smaller compression.scope, or send large layers dense, by a rule of "
               "compression.policy");
  const int64_t words =
      sum_of_fields(spec, [=](const Field& field) { return kept_count(ratio, field.numel); });
  return front_bytes(spec) + 4 * words;
}

SelectRanges<RangeRow> write_ranges(const Stream& stream, const UnitSpec& spec,
                                    const StepInfo& info, const Lists& lists) {
  TableWriter table(stream, lists.field);
  FieldRow field{};
  for (const Field& of : spec.fields) {
    field.capacity = kept_count(info.ratio, of.numel);
    table.put(field);
    field.entry += field.capacity;
  }
  select::Sizes next;
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const Field& of = spec.fields[f];
    const int64_t start = info.random(of).below(0, static_cast<uint32_t>(of.numel));
    const auto each_range = [&](const auto& visit) {
      each_piece(of, start, of.numel - start, [&](int64_t offset, int64_t at, int64_t numel) {
        visit(offset, start + at, numel);
      });
      each_piece(of, 0, start, visit);
    };
    select::put_slices(table, static_cast<int64_t>(f), each_range, next);
  }
  table.finish();
  return {lists.range, next.slices, next.chunks, spec.numel, lists.masks, lists.selected};
}

void clear_lists(const Stream& stream, const UnitSpec& spec, const Lists& lists) {
  parallel_for(stream, std::ssize(spec.fields), ZeroAll<int64_t>{lists.listed});
}

void add(const Stream& stream, const UnitSpec& spec, double ratio,
         std::span<const Payload> payloads, float weight, const Tensor& into, std::byte* memory) {
  const int64_t least = front_bytes(spec);
  for (const Payload& payload : payloads) {
    WISP_CHECK(
        least <= payload.bytes && payload.bytes <= capacity(spec, ratio) && payload.bytes % 4 == 0,
        "variance: the payload of rank ", payload.from, " has ", payload.bytes, " bytes, expected ",
        least, " and 4 per word, at most ", capacity(spec, ratio));
  }
  const auto adding = lay_out<Adding>(memory, spec);
  adding.rows.write(stream, spec);
  const auto fields = std::ssize(spec.fields);
  for (const Payload& payload : payloads) {
    const auto* counts = reinterpret_cast<const uint32_t*>(payload.data);
    const auto* tops = reinterpret_cast<const float*>(counts + fields - 1);
    const auto* words = reinterpret_cast<const uint32_t*>(tops + fields);
    const int64_t entries = (payload.bytes - least) / 4;
    run_once(stream, Split{counts, tops, fields, entries, adding.first, payload.complaints()});
    parallel_for(
        stream, entries,
        AddWords{adding, fields, words, tops, weight, into.data<float>(), payload.complaints()});
  }
}

}  // namespace wisp::power_words
