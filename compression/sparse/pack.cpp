#include "compression/sparse/pack_layout.h"

namespace wisp {
namespace {

using packed::layout_of, packed::Scratch, packed::sum_of, packed::Totals, packed::WireLayout;
using select::part_of, select::parts_of, select::Section;

/// The field position at which the run before entry i begins.
WISP_HD inline int64_t run_begin(const uint32_t* position, int64_t i) {
  return i > 0 ? int64_t{position[i - 1]} + 1 : 0;
}

/// The escapes before entry i. A gap has 32 bits, whose division is much faster than that of 64.
WISP_HD inline int64_t escapes_before(const uint32_t* position, int64_t i, uint32_t escape) {
  return static_cast<uint32_t>(position[i] - run_begin(position, i)) / escape;
}

/// Counts the entries of a part of a field's list including escapes.
struct CountParts {
  struct Shared {};
  SparseList list;
  int64_t parts;
  uint32_t escape;  // 0: there are none
  int64_t* entries;
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const Range range = list.range[item / parts];
    const Section part = part_of(range.count, item % parts, parts);
    const uint32_t* position = list.position + range.begin;
    int64_t count = part.size();
    if (escape > 0) {
      count += sum_of(team, part.from, part.to,
                      [&](int64_t i) { return escapes_before(position, i, escape); });
    }
    team.once([&] { entries[item] = count; });
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

/// A list in parts: each of the fields has `parts` of them, and each part a team.
struct PartedList {
  SparseList list;
  int64_t fields, parts;
  const int64_t* entries;  // of each part, escapes included; null: of each field, as in the list

  WISP_HD int64_t count_of(int64_t item) const {
    return entries ? entries[item] : list.range[item].count;
  }
  WISP_HD int64_t sum(const Team& team, int64_t from, int64_t to) const {
    return sum_of(team, from, to, [this](int64_t item) { return count_of(item); });
  }
};

/// Copies a part of a list, with escapes, to entry `begin` and those behind it.
struct Copy {
  SparseList to;
  uint32_t escape;  // 0: there are none
  WISP_HD void operator()(const Team& team, const Section& part, const uint32_t* position,
                          const float* value, int64_t begin) const {
    if (escape == 0) {
      team.fill(part.size(), to.position + begin,
                [&](int64_t i) { return position[part.from + i]; });
      team.fill(part.size(), to.value + begin, [&](int64_t i) { return value[part.from + i]; });
      return;
    }
    team.scan(
        part.size(), [&](int64_t i) { return 1 + escapes_before(position, part.from + i, escape); },
        [&](int64_t i, int64_t before) {
          const int64_t at = part.from + i;
          const uint32_t here = position[at];
          int64_t entry = begin + before;
          for (int64_t next = run_begin(position, at); here - next >= escape;
               next += escape, ++entry) {
            to.position[entry] = static_cast<uint32_t>(next + escape - 1);
            to.value[entry] = 0.0f;
          }
          to.position[entry] = here;
          to.value[entry] = value[at];
        });
  }
};

/// A payload to write.
struct Output {
  WireLayout layout;
  std::byte* data;
  int64_t* used;
  Totals totals;

  /// Ends the payload of `all` entries: the zeros between values and indices, and the totals.
  WISP_HD void end(int64_t all) const {
    const int64_t offset = layout.indices(all);
    *totals.entries = all;
    *totals.offset = offset;
    for (int64_t i = layout.values_end(all); i < offset; ++i) data[i] = std::byte{0};
    if (layout.number > 0) *used = offset + layout.number * all;
  }
};

/// Writes a part of a field's entries into the payload, without the signs of natural values, and
/// without indices that are not one number per entry.
template <class Value>
struct Pack {
  struct Shared {};
  PartedList from;
  Copy copy;  // if there are escapes, or if values are natural: WriteSigns reads it
  Output out;

  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const int64_t parts = from.parts, f = item / parts, last = from.fields * parts - 1;
    const int64_t count = from.count_of(item);
    const bool begins = item % parts == 0;
    if (count == 0 && !begins && item < last) return;
    const int64_t begin = from.sum(team, 0, item);
    const int64_t all = begin + count + from.sum(team, item + 1, last + 1);
    const int64_t of_field = begins ? count + from.sum(team, item + 1, item + parts) : 0;
    const Range range = from.list.range[f];
    const Section part = part_of(range.count, item % parts, parts);
    const uint32_t* position = from.list.position + range.begin;
    const float* value = from.list.value + range.begin;
    const int64_t first_begin = part.size() > 0 ? run_begin(position, part.from) : 0;
    const bool copies = std::is_same_v<Value, Natural> || copy.escape > 0;
    if (copies) {
      copy(team, part, position, value, begin);
      position = copy.to.position + begin;
      value = copy.to.value + begin;
    } else {
      position += part.from;
      value += part.from;
    }
    std::byte* values = out.data + out.layout.header();
    team.update(
        count, [&](int64_t i) { return value[i]; },
        [&](int64_t i, float x) { write_value<Value>(values, begin + i, x); });
    std::byte* indices = out.data + out.layout.indices(all);
    if (out.layout.number == 2) {
      auto* runs = reinterpret_cast<uint16_t*>(indices) + begin;
      team.fill(count, runs, [&](int64_t i) {
        return static_cast<uint16_t>(position[i] - (i > 0 ? run_begin(position, i) : first_begin));
      });
    } else if (out.layout.number == 4) {
      auto* as_it_is = reinterpret_cast<uint32_t*>(indices) + begin;
      team.fill(count, as_it_is, [&](int64_t i) { return position[i]; });
    }
    team.once([&] {
      if (begins && copies) copy.to.range[f] = {begin, of_field};
      if (begins && f < out.layout.stated)
        reinterpret_cast<uint32_t*>(out.data)[f] = static_cast<uint32_t>(of_field);
      if (item == last) out.end(all);
    });
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

/// Throws Error if positions in a field, or in the arenas, do not fit into 32 bits.
void check_positions(const UnitSpec& spec) {
  int64_t end = 0;
  for (const Field& field : spec.fields) {
    end = std::max(end, field.numel);
    for (const Slice& slice : field.slices) end = std::max(end, slice.offset + slice.numel);
  }
  WISP_CHECK(end <= UINT32_MAX, "sparse wire: a unit of ", spec.numel, " elements ends at element ",
             end, " of the model, and positions have 32 bits: at most ", UINT32_MAX,
             " can be numbered; send its parameters dense, by a rule of "
             "compression.policy");
}

}  // namespace

const IndexFormat& SparseWire::index(const UnitSpec& spec, const Room& room) const {
  return index_format(indices_, spec, room, packed::value_bits(values_));
}

int64_t SparseWire::capacity(const UnitSpec& spec, const Room& room) const {
  check_positions(spec);
  const IndexFormat& format = index(spec, room);
  const Room entries = with_escapes(format, room);
  return layout_of(values_, format, spec).indices(entries.of(spec)) +
         format.most_bytes(spec, entries);
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
  const WireLayout layout = layout_of(values_, format, spec);
  const auto scratch = lay_out<Scratch>(memory, format, spec, entries);
  const auto fields = std::ssize(spec.fields);
  const int64_t parts = parts_of(stream, packed::most_entries(spec, room));
  const int64_t each = room.of(spec) / (fields * parts);
  const auto escape = static_cast<uint32_t>(format.escape);
  const bool counts = escape > 0 || parts > 1;
  if (counts) {
    parallel_teams(stream, fields * parts, CountParts{list, parts, escape, scratch.of_part}, each);
  }
  dispatch_wire(values_, [&]<class Value>(Value) {
    parallel_teams(stream, fields * parts,
                   Pack<Value>{{list, fields, parts, counts ? scratch.of_part : nullptr},
                               {scratch.list, escape},
                               {layout, outlet.data, outlet.used, scratch.totals}},
                   each);
  });
  if (values_ == WireFormat::natural) {
    parallel_for_counted(
        stream, scratch.totals.entries, entries.of(spec),
        WriteSigns{scratch.list.value, scratch.totals.entries, outlet.data + layout.header()});
  }
  if (format.number == 0) {
    format.write(stream, spec, entries, list, {outlet.data, scratch.totals.offset}, outlet.used,
                 scratch.format);
  }
}

}  // namespace wisp
