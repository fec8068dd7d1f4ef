#include "compression/sparse/pack.h"

#include "compression/unit_rows.h"

namespace wisp {
namespace {

/// Layout of the part that holds values.
struct ValueLayout {
  int64_t header, each, alignment;  // each: bytes of a value; 0: natural
  WISP_HD int64_t size(int64_t entries) const {
    return each > 0 ? each * entries : entries + (entries + 7) / 8;
  }
  /// Begin of the indices.
  WISP_HD int64_t end(int64_t entries) const {
    return (header + size(entries) + alignment - 1) / alignment * alignment;
  }
};

int64_t value_bits(WireFormat format) {
  if (format == WireFormat::natural) return 9;
  return format == WireFormat::f32 ? 32 : 16;
}

int64_t stated_counts(const IndexFormat& format, const UnitSpec& spec) {
  return static_cast<int64_t>(spec.fields.size()) - (format.counts_all() ? 0 : 1);
}

ValueLayout layout_of(WireFormat values, const IndexFormat& format, const UnitSpec& spec) {
  const int64_t each = values == WireFormat::natural ? 0 : value_bits(values) / 8;
  return {4 * stated_counts(format, spec), each, format.alignment()};
}

/// Scratch of a unit while it is packed or read. The list includes escapes, and its fields follow
/// each other without gaps.
struct Scratch {
  int64_t* entries;
  int64_t* offset;        // offset of the indices
  int64_t* with_escapes;  // entries of each field, escapes included
  SparseList list;
  UnitRows rows;
  int64_t* most;  // capacity of each field; behind the rows, in their table
  std::byte* format;

  Scratch(Cursor& cursor, const IndexFormat& index, const UnitSpec& spec, const Room& room)
      : entries(cursor.take<int64_t>(1)),
        offset(cursor.take<int64_t>(1)),
        with_escapes(cursor.take<int64_t>(std::ssize(spec.fields))),
        list(cursor, std::ssize(spec.fields), room.of(spec)),
        rows(cursor, spec),
        most(cursor.take<int64_t>(std::ssize(spec.fields))),
        format(cursor.take<std::byte>(index.scratch_bytes(spec, room))) {}
};

/// The field position at which the run before entry i begins.
WISP_HD inline int64_t run_begin(const uint32_t* position, int64_t i) {
  return i > 0 ? int64_t{position[i - 1]} + 1 : 0;
}

/// The sum of count_of(f) over [from, to).
template <class CountOf>
WISP_HD int64_t sum_of(const Team& team, int64_t from, int64_t to, const CountOf& count_of) {
  return team.scan(
      to - from, [&](int64_t i) { return count_of(from + i); }, [](int64_t, int64_t) {});
}

// ---------------------------------------------------------------- pack

/// Counts the entries of a field's list including escapes.
struct CountEscapes {
  struct Shared {};
  SparseList list;
  int64_t escape;
  int64_t* with_escapes;
  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const Range range = list.range[f];
    const uint32_t* position = list.position + range.begin;
    const int64_t count = sum_of(team, 0, range.count, [&](int64_t i) {
      return 1 + (position[i] - run_begin(position, i)) / escape;
    });
    team.once([&] { with_escapes[f] = count; });
  }
};

template <class Value>
WISP_HD inline void write_value(std::byte* out, int64_t e, float value) {
  reinterpret_cast<Value*>(out)[e] = to_wire<Value>(value);
}
/// Writes the exponent only, without the sign.
template <>
WISP_HD inline void write_value<Natural>(std::byte* out, int64_t e, float value) {
  reinterpret_cast<uint8_t*>(out)[e] = static_cast<uint8_t>(to_wire<Natural>(value).bits & 0xffu);
}

/// Writes a field's part of the payload, without the signs of natural values, and without indices
/// that are not one number per entry.
template <class Value>
struct Pack {
  struct Shared {};
  SparseList list;
  int64_t fields, stated;
  const int64_t* with_escapes;  // null: there are none
  int64_t escape;
  int number;  // bytes of an index, or 0
  ValueLayout layout;
  std::byte* data;
  int64_t* used;
  int64_t *entries, *offset;
  SparseList to;  // copy of the list with escapes, or without gaps between fields
  bool copies;

  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const auto count_of = [this](int64_t g) {
      return with_escapes ? with_escapes[g] : list.range[g].count;
    };
    const int64_t begin = sum_of(team, 0, f, count_of);
    const int64_t count = count_of(f);
    const int64_t all = begin + count + sum_of(team, f + 1, fields, count_of);
    const uint32_t* position = list.position + list.range[f].begin;
    const float* value = list.value + list.range[f].begin;
    if (copies) {
      copy(team, list.range[f].count, position, value, begin);
      position = to.position + begin;
      value = to.value + begin;
    }
    std::byte* values = data + layout.header;
    team.update(
        count, [&](int64_t i) { return value[i]; },
        [&](int64_t i, float x) { write_value<Value>(values, begin + i, x); });
    std::byte* indices = data + layout.end(all);
    if (number == 2) {
      auto* run = reinterpret_cast<uint16_t*>(indices) + begin;
      team.fill(count, run, [&](int64_t i) {
        return static_cast<uint16_t>(position[i] - run_begin(position, i));
      });
    } else if (number == 4) {
      auto* as_it_is = reinterpret_cast<uint32_t*>(indices) + begin;
      team.fill(count, as_it_is, [&](int64_t i) { return position[i]; });
    }
    team.once([&] {
      if (copies) to.range[f] = {begin, count};
      if (f < stated) reinterpret_cast<uint32_t*>(data)[f] = static_cast<uint32_t>(count);
      if (f == fields - 1) end(all);
    });
  }

 private:
  WISP_HD void copy(const Team& team, int64_t count, const uint32_t* position, const float* value,
                    int64_t begin) const {
    if (!with_escapes) {
      team.fill(count, to.position + begin, [&](int64_t i) { return position[i]; });
      team.fill(count, to.value + begin, [&](int64_t i) { return value[i]; });
      return;
    }
    team.scan(
        count, [&](int64_t i) { return 1 + (position[i] - run_begin(position, i)) / escape; },
        [&](int64_t i, int64_t before) {
          int64_t entry = begin + before;
          for (int64_t next = run_begin(position, i); position[i] - next >= escape;
               next += escape, ++entry) {
            to.position[entry] = static_cast<uint32_t>(next + escape - 1);
            to.value[entry] = 0.0f;
          }
          to.position[entry] = position[i];
          to.value[entry] = value[i];
        });
  }
  /// Ends the payload: the zeros between the parts, and the totals for other kernels.
  WISP_HD void end(int64_t all) const {
    *entries = all;
    *offset = layout.end(all);
    for (int64_t i = layout.header + layout.size(all); i < *offset; ++i) data[i] = std::byte{0};
    if (number > 0) *used = *offset + number * all;
  }
};

struct WriteSigns {
  const float* value;
  const int64_t* entries;
  std::byte* out;
  WISP_HD void operator()(int64_t e) const {
    if (e % 8 > 0) return;
    uint32_t signs = 0;
    for (int64_t i = 0; i < 8 && e + i < *entries; ++i)
      signs |= (float_bits(value[e + i]) >> 31) << i;
    reinterpret_cast<uint8_t*>(out)[*entries + e / 8] = static_cast<uint8_t>(signs);
  }
};

// ---------------------------------------------------------------- unpack

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

/// A team's finding about its field.
struct Found {
  bool good;
};

/// Takes a field's part of a list that was read, and adds it to the field's slices. If positions do
/// not ascend or lie beyond the field, the part becomes empty.
struct Take {
  UnitRows rows;
  float weight;
  float* arena;  // null: nothing is added
  Complaints complaints;

  enum class State { good, outside, disordered };
  struct Sum {
    uint32_t at;
    float value;
  };
  WISP_HD void operator()(const Team& team, int64_t f, const Range& range, const SparseList& list,
                          Found& found) const {
    const uint32_t* position = list.position + range.begin;
    const float* value = list.value + range.begin;
    const UnitRows::OfField field = rows.field[f];
    team.once([&] { found.good = true; });
    team.update(
        range.count,
        [&](int64_t i) {
          if (position[i] >= field.numel) return State::outside;
          return i > 0 && position[i - 1] >= position[i] ? State::disordered : State::good;
        },
        [&](int64_t i, State state) {
          if (state == State::good) return;
          found.good = false;
          complaints.add(state == State::outside ? Wrong::position : Wrong::order, f, i);
        });
    team.once([&] { list.range[f] = {range.begin, found.good ? range.count : 0}; });
    if (!arena || !found.good) return;
    for (int64_t s = field.slice; s < field.slice + field.slices; ++s) {
      const bool whole = field.slices == 1;
      const int64_t from =
          whole ? 0 : sparse::count_below(position, range.count, rows.slice[s].position);
      const int64_t to =
          whole ? range.count : sparse::count_below(position, range.count, rows.end_of(field, s));
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

struct TakeFields {
  using Shared = Found;
  SparseList list;
  Take take;
  WISP_HD void operator()(const Team& team, int64_t f, Found& found) const {
    take(team, f, list.range[f], list, found);
  }
};

/// Reads a field's part of a payload. Counts beyond the payload or the field are cut. Indices that
/// are not one number per entry are read later.
template <class Value>
struct Unpack {
  using Shared = Found;
  const std::byte* data;
  int64_t bytes;
  int64_t fields, stated;
  int64_t limit;        // the most entries
  const int64_t* most;  // the most entries of each field
  int64_t number;       // bytes of an index, or 0
  ValueLayout layout;
  SparseList list;
  int64_t *entries, *offset;
  Take take;

  WISP_HD void operator()(const Team& team, int64_t f, Found& found) const {
    const auto count_of = [this](int64_t g) {
      const int64_t count =
          g < stated ? int64_t{reinterpret_cast<const uint32_t*>(data)[g]} : limit;
      return count < most[g] ? count : most[g];
    };
    const auto within_limit = [this](int64_t sum) { return sum < limit ? sum : limit; };
    const int64_t before = sum_of(team, 0, f, count_of);
    const int64_t through = before + count_of(f);
    const int64_t all = within_limit(through + sum_of(team, f + 1, fields, count_of));
    const Range range{within_limit(before), within_limit(through) - within_limit(before)};
    const std::byte* values = data + layout.header;
    float* value = list.value + range.begin;
    team.fill(range.count, value,
              [&](int64_t i) { return read_value<Value>(values, range.begin + i, all); });
    read_numbers(team, range, data + layout.end(all));
    team.once([&] {
      list.range[f] = range;
      judge_count(f, range);
      if (f < fields - 1) return;
      *entries = all;
      *offset = layout.end(all);
      const int64_t end = *offset + number * all;
      if (number > 0 && end != bytes) take.complaints.add(Wrong::end, f, end);
    });
    if (number > 0) take(team, f, range, list, found);
  }

 private:
  WISP_HD void judge_count(int64_t f, const Range& range) const {
    const int64_t left = limit - range.begin;
    const int64_t count = f < stated ? int64_t{reinterpret_cast<const uint32_t*>(data)[f]} : left;
    if (count > range.count) take.complaints.add(Wrong::count, f, count);
  }
  WISP_HD void read_numbers(const Team& team, const Range& range, const std::byte* indices) const {
    uint32_t* position = list.position + range.begin;
    if (number == 2) {
      const auto* run = reinterpret_cast<const uint16_t*>(indices) + range.begin;
      team.scan(
          range.count, [&](int64_t i) { return int64_t{run[i]} + 1; },
          [&](int64_t i, int64_t next) {
            next += run[i];
            position[i] = next < kNowhere ? static_cast<uint32_t>(next) : kNowhere;
          });
    } else if (number == 4) {
      const auto* as_it_is = reinterpret_cast<const uint32_t*>(indices) + range.begin;
      team.fill(range.count, position, [&](int64_t i) { return as_it_is[i]; });
    }
  }
};

}  // namespace

const IndexFormat& SparseWire::index(const UnitSpec& spec, const Room& room) const {
  return index_format(indices_, spec, room, value_bits(values_));
}

int64_t SparseWire::capacity(const UnitSpec& spec, const Room& room) const {
  const IndexFormat& format = index(spec, room);
  const Room entries = with_escapes(format, room);
  return layout_of(values_, format, spec).end(entries.of(spec)) + format.most_bytes(spec, entries);
}

int64_t SparseWire::scratch_bytes(const UnitSpec& spec, const Room& room) const {
  const IndexFormat& format = index(spec, room);
  const Room entries = with_escapes(format, room);
  return layout_bytes<Scratch>(format, spec, entries);
}

SparseWire::Encoding::Encoding(Cursor& cursor, const SparseWire& wire, const UnitSpec& spec,
                               const Room& room, Selection::Kind kind)
    : list(cursor, static_cast<int64_t>(spec.fields.size()), room.of(spec)),
      work(cursor.take_last([&] {
        return std::max(select_list_bytes(spec, room, kind), wire.scratch_bytes(spec, room));
      })) {}

int64_t SparseWire::encode_bytes(const UnitSpec& spec, const Room& room,
                                 Selection::Kind kind) const {
  return layout_bytes<Encoding>(*this, spec, room, kind);
}

void SparseWire::pack(const Stream& stream, const UnitSpec& spec, const Room& room,
                      const SparseList& list, const Outlet& outlet, std::byte* memory) const {
  WISP_CHECK(outlet.capacity >= capacity(spec, room), "sparse wire: the unit may need ",
             capacity(spec, room), " bytes, the outlet has ", outlet.capacity);
  const IndexFormat& format = index(spec, room);
  const Room entries = with_escapes(format, room);
  const ValueLayout layout = layout_of(values_, format, spec);
  const auto scratch = lay_out<Scratch>(memory, format, spec, entries);
  const auto fields = std::ssize(spec.fields);
  const int64_t each = room.of(spec) / fields;
  const bool escapes = format.escape() > 0;
  const bool natural = values_ == WireFormat::natural;
  if (escapes) {
    parallel_teams(stream, fields, CountEscapes{list, format.escape(), scratch.with_escapes}, each);
  }
  dispatch_wire(values_, [&]<class Value>(Value) {
    parallel_teams(stream, fields,
                   Pack<Value>{list, fields, stated_counts(format, spec),
                               escapes ? scratch.with_escapes : nullptr, format.escape(),
                               format.number(), layout, outlet.data, outlet.used, scratch.entries,
                               scratch.offset, scratch.list, escapes || natural},
                   each);
  });
  if (natural) {
    parallel_for_counted(
        stream, scratch.entries, entries.of(spec),
        WriteSigns{scratch.list.value, scratch.entries, outlet.data + layout.header});
  }
  if (format.number() == 0) {
    format.write(stream, spec, entries, list, {outlet.data, scratch.offset}, outlet.used,
                 scratch.format);
  }
}

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
  const int64_t each = entries.of(spec) / fields;
  const Take take{scratch.rows, weight, into, payload.complaints()};
  dispatch_wire(values_, [&]<class Value>(Value) {
    parallel_teams(stream, fields,
                   Unpack<Value>{payload.data, payload.bytes, fields, stated_counts(format, spec),
                                 limit, scratch.most, format.number(), layout, list,
                                 scratch.entries, scratch.offset, take},
                   each);
  });
  if (format.number() == 0) {
    format.read(stream, spec, entries, list,
                {payload.data, scratch.offset, payload.bytes, payload.complaints()},
                scratch.format);
    parallel_teams(stream, fields, TakeFields{list, take}, each);
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
