#include "compression/sparse/pack_layout.h"

namespace wisp {
namespace {

using packed::layout_of, packed::Scratch, packed::stated_counts, packed::sum_of,
    packed::ValueLayout;
using select::part_of, select::parts_of, select::Section;

template <class Value>
WISP_HD inline float read_value(const std::byte* in, int64_t e, int64_t /*entries*/) {
  return static_cast<float>(reinterpret_cast<const Value*>(in)[e]);
}
template <>
WISP_HD inline float read_value<Natural>(const std::byte* in, int64_t e, int64_t entries) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(in);
  Natural natural;
  natural.bits =
      static_cast<uint16_t>((uint32_t{bytes[entries + e / 8]} >> e % 8 & 1u) << 8 | bytes[e]);
  return static_cast<float>(natural);
}

/// Takes a list that was read, and adds it to the fields' slices. If a field's positions do not
/// ascend or lie beyond it, its part of the list becomes empty.
struct Take {
  UnitRows rows;
  float weight;
  float* arena;  // null: nothing is added
  Complaints complaints;
  int64_t* bad;  // of each field; 0: its positions are good

  enum class State { good, outside, disordered };
  struct Sum {
    uint32_t at;
    float value;
  };
  /// Judges the positions of a field's part. `before` is the position before them, or -1.
  WISP_HD void check(const Team& team, int64_t f, const Section& part, int64_t before,
                     const uint32_t* position) const {
    const int64_t numel = rows.field[f].numel;
    team.update(
        part.size(),
        [&](int64_t i) {
          const int64_t at = part.from + i;
          if (position[at] >= numel) return State::outside;
          const int64_t previous = i > 0 ? int64_t{position[at - 1]} : before;
          return previous >= position[at] ? State::disordered : State::good;
        },
        [&](int64_t i, State state) {
          if (state == State::good) return;
          bad[f] = 1;
          const Wrong wrong = state == State::outside ? Wrong::position : Wrong::order;
          complaints.add(wrong, f, part.from + i);
        });
  }
  /// Takes a part of a field that was judged.
  WISP_HD void operator()(const Team& team, int64_t f, int64_t part, int64_t parts,
                          const SparseList& list) const {
    if (bad[f] != 0) {
      if (part == 0) team.once([&] { list.range[f].count = 0; });
      return;
    }
    if (arena) add(team, rows.field[f], list.range[f], part, parts, list);
  }

 private:
  WISP_HD void add(const Team& team, const UnitRows::OfField& field, const Range& range,
                   int64_t index, int64_t parts, const SparseList& list) const {
    const Section part = part_of(range.count, index, parts);
    const uint32_t* position = list.position + range.begin + part.from;
    const float* value = list.value + range.begin + part.from;
    for (int64_t s = field.slice; s < field.slice + field.slices; ++s) {
      const bool whole = field.slices == 1;
      const int64_t from =
          whole ? 0 : sparse::count_below(position, part.size(), rows.slice[s].position);
      const int64_t to =
          whole ? part.size() : sparse::count_below(position, part.size(), rows.end_of(field, s));
      float* into = arena + rows.slice[s].shift;
      team.update(
          to - from,
          [&](int64_t i) {
            const uint32_t at = position[from + i];
            return Sum{at, into[at] + weight * value[from + i]};
          },
          [&](int64_t, const Sum& sum) { into[sum.at] = sum.value; });
    }
  }
};

/// Takes what earlier kernels have read.
struct TakeRead {
  struct Shared {};
  SparseList list;
  Take take;
  int64_t parts;
  bool checked;
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const int64_t f = item / parts;
    if (!checked) {
      const Range range = list.range[f];
      take.check(team, f, {0, range.count}, -1, list.position + range.begin);
    }
    take(team, f, item % parts, parts, list);
  }
};

/// The entries that a payload states for each field. Those beyond the payload or the field are cut.
struct Stated {
  const std::byte* data;
  int64_t fields, stated;
  int64_t limit;        // the most entries
  const int64_t* most;  // the most entries of each field

  struct Place {
    Range range;  // of a field's entries
    int64_t all;  // entries of the payload
  };
  WISP_HD Place place_of(const Team& team, int64_t f) const {
    const auto count_of = [this](int64_t g) {
      const int64_t count = g < stated ? of(g) : limit;
      return count < most[g] ? count : most[g];
    };
    const auto within_limit = [this](int64_t sum) { return sum < limit ? sum : limit; };
    const int64_t before = sum_of(team, 0, f, count_of);
    const int64_t through = before + count_of(f);
    const int64_t all = within_limit(through + sum_of(team, f + 1, fields, count_of));
    return {{within_limit(before), within_limit(through) - within_limit(before)}, all};
  }
  /// The entries that the payload says or leaves for field f, whose range is `range`.
  WISP_HD int64_t uncut(int64_t f, const Range& range) const {
    return f < stated ? of(f) : limit - range.begin;
  }
  /// True if the part of a field may have entries.
  WISP_HD bool reaches(int64_t f, int64_t part) const {
    return part == 0 || part * select::kTile < most[f];
  }

 private:
  WISP_HD int64_t of(int64_t f) const { return reinterpret_cast<const uint32_t*>(data)[f]; }
};

struct ClearBad {
  int64_t* bad;
  WISP_HD void operator()(int64_t f) const { bad[f] = 0; }
};

/// Prepares fields that several teams share, and adds up the runs of each part.
struct SumRuns {
  struct Shared {};
  Stated stated;
  ValueLayout layout;
  int64_t parts;
  int64_t *of_part, *bad;
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const int64_t f = item / parts;
    if (item % parts == 0) team.once([&] { bad[f] = 0; });
    if (!stated.reaches(f, item % parts)) return;
    const auto [range, all] = stated.place_of(team, f);
    const Section part = part_of(range.count, item % parts, parts);
    const auto* run =
        reinterpret_cast<const uint16_t*>(stated.data + layout.end(all)) + range.begin;
    const int64_t sum =
        sum_of(team, part.from, part.to, [&](int64_t i) { return int64_t{run[i]} + 1; });
    team.once([&] { of_part[item] = sum; });
  }
};

/// Reads a part of a field's entries in a payload. Indices that are not one number per entry are
/// read later.
template <class Value>
struct Unpack {
  struct Shared {};
  Stated stated;
  int64_t bytes;   // of the payload
  int64_t number;  // bytes of an index, or 0
  ValueLayout layout;
  SparseList list;
  int64_t parts;
  const int64_t* of_part;
  int64_t *entries, *offset;
  Take take;

  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const int64_t f = item / parts, last = stated.fields * parts - 1;
    if (!stated.reaches(f, item % parts) && item < last) return;
    const Stated::Place place = stated.place_of(team, f);
    const Range range = place.range;
    const int64_t all = place.all;
    const Section part = part_of(range.count, item % parts, parts);
    if (part.size() == 0 && item % parts > 0 && item < last) return;
    const std::byte* values = stated.data + layout.header;
    float* value = list.value + range.begin + part.from;
    team.fill(part.size(), value, [&](int64_t i) {
      return read_value<Value>(values, range.begin + part.from + i, all);
    });
    const std::byte* indices = stated.data + layout.end(all);
    const int64_t before = part.size() > 0 ? read_numbers(team, item, range, part, indices) : -1;
    team.once([&] {
      if (item % parts == 0) {
        list.range[f] = range;
        const int64_t count = stated.uncut(f, range);
        if (count > range.count) take.complaints.add(Wrong::count, f, count);
        if (parts == 1) take.bad[f] = 0;
      }
      if (item < last) return;
      *entries = all;
      *offset = layout.end(all);
      const int64_t end = *offset + number * all;
      if (number > 0 && end != bytes) take.complaints.add(Wrong::end, f, end);
    });
    if (number == 0) return;
    take.check(team, f, part, before, list.position + range.begin);
    if (parts == 1) take(team, f, 0, 1, list);
  }

 private:
  /// Returns the position before the part's first entry, or -1.
  WISP_HD int64_t read_numbers(const Team& team, int64_t item, const Range& range,
                               const Section& part, const std::byte* indices) const {
    const int64_t begin = range.begin + part.from;
    uint32_t* position = list.position + begin;
    if (number == 2) {
      const auto* run = reinterpret_cast<const uint16_t*>(indices) + begin;
      const int64_t first = parts == 1 ? 0
                                       : sum_of(team, item / parts * parts, item,
                                                [this](int64_t i) { return of_part[i]; });
      team.scan(
          part.size(), [&](int64_t i) { return int64_t{run[i]} + 1; },
          [&](int64_t i, int64_t next) {
            next += first + run[i];
            position[i] = next < kNowhere ? static_cast<uint32_t>(next) : kNowhere;
          });
      return first - 1;
    }
    if (number == 4) {
      const auto* as_it_is = reinterpret_cast<const uint32_t*>(indices) + begin;
      team.fill(part.size(), position, [&](int64_t i) { return as_it_is[i]; });
      if (part.from > 0) return as_it_is[-1];
    }
    return -1;
  }
};

}  // namespace

SparseList SparseWire::unpack(const Stream& stream, const UnitSpec& spec, const Room& room,
                              const Payload& payload, std::byte* memory) const {
  put_rows(stream, spec, room, memory);
  return read(stream, spec, room, payload, 0.0f, nullptr, memory);
}

void SparseWire::put_rows(const Stream& stream, const UnitSpec& spec, const Room& room,
                          std::byte* memory) const {
  const IndexFormat& format = index(spec, room);
  const Room entries = with_escapes(format, room);
  const auto scratch = lay_out<Scratch>(memory, format, spec, entries);
  TableWriter table = scratch.rows.table(stream, spec);
  for (const Field& field : spec.fields) table.put(entries.of(field));
  table.finish();
}

SparseList SparseWire::read(const Stream& stream, const UnitSpec& spec, const Room& room,
                            const Payload& payload, float weight, float* into,
                            std::byte* memory) const {
  const IndexFormat& format = index(spec, room);
  const Room entries = with_escapes(format, room);
  const ValueLayout layout = layout_of(values_, format, spec);
  const auto size = [&](int64_t count) { return layout.end(count) + format.least_bytes(count); };
  int64_t limit = 0;  // the most entries that fit
  for (int64_t most = entries.of(spec); limit < most;) {
    const int64_t half = (limit + most + 1) / 2;
    if (size(half) <= payload.bytes) {
      limit = half;
    } else {
      most = half - 1;
    }
  }
  const bool whole = format.counts_all() ? size(0) <= payload.bytes : size(limit) == payload.bytes;
  WISP_CHECK(whole && payload.bytes <= capacity(spec, room), "sparse payload of rank ",
             payload.from, " has ", payload.bytes, " bytes, expected ", size(limit), " or at most ",
             capacity(spec, room), " (", name_of(values_), ", ", format.name(), ")");

  const auto scratch = lay_out<Scratch>(memory, format, spec, entries);
  const SparseList list = scratch.list;
  const auto fields = std::ssize(spec.fields);
  const int64_t number = format.number();
  const int64_t parts = number > 0 ? parts_of(stream, packed::most_entries(spec, entries)) : 1;
  const int64_t each = entries.of(spec) / (fields * parts);
  const Stated stated{payload.data, fields, stated_counts(format, spec), limit, scratch.most};
  const Take take{scratch.rows, weight, into, payload.complaints(), scratch.bad};
  if (parts > 1 && number == 2) {
    parallel_teams(stream, fields * parts,
                   SumRuns{stated, layout, parts, scratch.of_part, scratch.bad}, each);
  } else if (parts > 1) {
    parallel_for(stream, fields, ClearBad{scratch.bad});
  }
  dispatch_wire(values_, [&]<class Value>(Value) {
    parallel_teams(stream, fields * parts,
                   Unpack<Value>{stated, payload.bytes, number, layout, list, parts,
                                 scratch.of_part, scratch.entries, scratch.offset, take},
                   each);
  });
  if (number == 0) {
    format.read(stream, spec, entries, list,
                {payload.data, scratch.offset, payload.bytes, payload.complaints()},
                scratch.format);
  }
  if (number == 0 || parts > 1)
    parallel_teams(stream, fields * parts, TakeRead{list, take, parts, number > 0}, each);
  return list;
}

void SparseWire::decode(const Stream& stream, const UnitSpec& spec, const Room& room,
                        std::span<const Payload> payloads, float weight, bool add,
                        const Tensor& into, std::byte* memory) const {
  put_rows(stream, spec, room, memory);
  if (!add) clear_fields(stream, spec, into);
  for (const Payload& payload : payloads)
    read(stream, spec, room, payload, weight, into.data<float>(), memory);
}

}  // namespace wisp
