#include "compression/slices.h"
#include "compression/sparse/pack_layout.h"

namespace wisp {
namespace {

using packed::layout_of, packed::Scratch, packed::sum_of, packed::Totals, packed::WireLayout;
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

/// Judges the positions of a field's part. `before` is the position before them, or -1.
struct Check {
  const UnitRows::OfField* field;
  Complaints complaints;
  int64_t* bad;  // of each field; not 0: its positions do not ascend or lie beyond it

  enum class State { good, outside, disordered };
  WISP_HD void operator()(const Team& team, int64_t f, const Section& part, int64_t before,
                          const uint32_t* position) const {
    const int64_t numel = field[f].numel;
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
};

/// Adds a part of a judged field to the field's slices. The list of a bad field becomes empty.
struct Take {
  UnitRows rows;
  const int64_t* bad;
  float weight;
  float* arena;  // null: nothing is added

  struct Sum {
    uint32_t at;
    float value;
  };
  WISP_HD void operator()(const Team& team, int64_t f, int64_t index, int64_t parts,
                          const SparseList& list) const {
    if (bad[f] != 0) {
      if (index == 0) team.once([&] { list.range[f].count = 0; });
      return;
    }
    if (!arena) return;
    const UnitRows::OfField& field = rows.field[f];
    const Range range = list.range[f];
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

/// Judges and takes the fields that an index format has read.
struct CheckAndTake {
  struct Shared {};
  SparseList list;
  Check check;
  Take take;
  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const Range range = list.range[f];
    check(team, f, {0, range.count}, -1, list.position + range.begin);
    take(team, f, 0, 1, list);
  }
};

/// Takes fields of several parts. Unpack has judged them.
struct TakeJudged {
  struct Shared {};
  SparseList list;
  Take take;
  int64_t parts;
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    take(team, item / parts, item % parts, parts, list);
  }
};

/// A payload to read, and the entries that it states for each field. Those beyond the payload or
/// the field are cut.
struct Input {
  WireLayout layout;
  const std::byte* data;
  int64_t fields;
  int64_t limit;        // the most entries
  const int64_t* most;  // the most entries of each field

  struct Place {
    Range range;  // of a field's entries
    int64_t all;  // entries of the payload
  };
  WISP_HD Place place_of(const Team& team, int64_t f) const {
    const auto count_of = [this](int64_t g) {
      const int64_t count = g < layout.stated ? of(g) : limit;
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
    return f < layout.stated ? of(f) : limit - range.begin;
  }
  /// True if the part of a field may have entries.
  WISP_HD bool reaches(int64_t f, int64_t part) const {
    return part == 0 || part * select::kTile < most[f];
  }

 private:
  WISP_HD int64_t of(int64_t f) const { return reinterpret_cast<const uint32_t*>(data)[f]; }
};

/// Prepares fields that several teams share, and adds up the runs of each part.
struct SumRuns {
  struct Shared {};
  Input input;
  int64_t parts;
  int64_t *of_part, *bad;
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const int64_t f = item / parts;
    if (item % parts == 0) team.once([&] { bad[f] = 0; });
    if (!input.reaches(f, item % parts)) return;
    const auto [range, all] = input.place_of(team, f);
    const Section part = part_of(range.count, item % parts, parts);
    const auto* run =
        reinterpret_cast<const uint16_t*>(input.data + input.layout.indices(all)) + range.begin;
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
  Input input;
  int64_t bytes;  // of the payload
  SparseList list;
  int64_t parts;
  const int64_t* of_part;  // of each part: positions of its runs, if a field has several parts
  Totals totals;
  Check check;
  Take take;  // if a field has one part

  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const int64_t f = item / parts, last = input.fields * parts - 1;
    if (!input.reaches(f, item % parts) && item < last) return;
    const Input::Place place = input.place_of(team, f);
    const Range range = place.range;
    const int64_t all = place.all;
    const Section part = part_of(range.count, item % parts, parts);
    if (part.size() == 0 && item % parts > 0 && item < last) return;
    const std::byte* values = input.data + input.layout.header();
    float* value = list.value + range.begin + part.from;
    team.fill(part.size(), value, [&](int64_t i) {
      return read_value<Value>(values, range.begin + part.from + i, all);
    });
    const std::byte* indices = input.data + input.layout.indices(all);
    const int64_t before = part.size() > 0 ? read_numbers(team, item, range, part, indices) : -1;
    team.once([&] {
      if (item % parts == 0) {
        list.range[f] = range;
        const int64_t count = input.uncut(f, range);
        if (count > range.count) check.complaints.add(Wrong::count, f, count);
        if (parts == 1) check.bad[f] = 0;
      }
      if (item < last) return;
      *totals.entries = all;
      *totals.offset = input.layout.indices(all);
      const int64_t end = *totals.offset + input.layout.number * all;
      if (input.layout.number > 0 && end != bytes) check.complaints.add(Wrong::end, f, end);
    });
    if (input.layout.number == 0) return;
    check(team, f, part, before, list.position + range.begin);
    if (parts == 1) take(team, f, 0, 1, list);
  }

 private:
  /// Returns the position before the part's first entry, or -1.
  WISP_HD int64_t read_numbers(const Team& team, int64_t item, const Range& range,
                               const Section& part, const std::byte* indices) const {
    const int64_t begin = range.begin + part.from;
    uint32_t* position = list.position + begin;
    if (input.layout.number == 2) {
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
    if (input.layout.number == 4) {
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
  const WireLayout layout = layout_of(values_, format, spec);
  const auto size = [&](int64_t count) { return layout.indices(count) + layout.number * count; };
  int64_t limit = 0;  // the most entries that fit
  for (int64_t most = entries.of(spec); limit < most;) {
    const int64_t half = (limit + most + 1) / 2;
    if (size(half) <= payload.bytes) {
      limit = half;
    } else {
      most = half - 1;
    }
  }
  const bool whole = format.counts_all ? size(0) <= payload.bytes : size(limit) == payload.bytes;
  WISP_CHECK(whole && payload.bytes <= capacity(spec, room), "sparse payload of rank ",
             payload.from, " has ", payload.bytes, " bytes, expected ", size(limit), " or at most ",
             capacity(spec, room), " (", name_of(values_), ", ", format.name, ")");

  const auto scratch = lay_out<Scratch>(memory, format, spec, entries);
  const SparseList list = scratch.list;
  const auto fields = std::ssize(spec.fields);
  const int64_t parts =
      layout.number > 0 ? parts_of(stream, packed::most_entries(spec, entries)) : 1;
  const int64_t each = entries.of(spec) / (fields * parts);
  const Input input{layout, payload.data, fields, limit, scratch.most};
  const Check check{scratch.rows.field, payload.complaints(), scratch.bad};
  const Take take{scratch.rows, scratch.bad, weight, into};
  if (parts > 1 && layout.number == 2) {
    parallel_teams(stream, fields * parts, SumRuns{input, parts, scratch.of_part, scratch.bad},
                   each);
  } else if (parts > 1) {
    parallel_for(stream, fields, ZeroAll<int64_t>{scratch.bad});
  }
  dispatch_wire(values_, [&]<class Value>(Value) {
    parallel_teams(stream, fields * parts,
                   Unpack<Value>{input, payload.bytes, list, parts, scratch.of_part, scratch.totals,
                                 check, take},
                   each);
  });
  if (layout.number == 0) {
    format.read(stream, spec, entries, list,
                {payload.data, scratch.totals.offset, payload.bytes, payload.complaints()},
                scratch.format);
    parallel_teams(stream, fields, CheckAndTake{list, check, take}, each);
  } else if (parts > 1) {
    parallel_teams(stream, fields * parts, TakeJudged{list, take, parts}, each);
  }
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
