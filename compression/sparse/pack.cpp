#include "compression/sparse/pack_layout.h"

namespace wisp {
namespace {

using packed::layout_of, packed::Scratch, packed::stated_counts, packed::sum_of,
    packed::ValueLayout;
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

/// Writes a part of a field's entries into the payload, without the signs of natural values, and
/// without indices that are not one number per entry.
template <class Value>
struct Pack {
  struct Shared {};
  SparseList list;
  int64_t fields, stated, parts;
  const int64_t* entries;  // of each part, escapes included; null: of each field, as in the list
  uint32_t escape;
  int number;  // bytes of an index, or 0
  ValueLayout layout;
  std::byte* data;
  int64_t* used;
  int64_t *all_entries, *offset;
  SparseList to;  // copy of the list with escapes, or without gaps between fields
  bool copies;

  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const int64_t f = item / parts, last = fields * parts - 1, count = count_of(item);
    const bool begins = item % parts == 0;
    if (count == 0 && !begins && item < last) return;
    const int64_t begin = sum(team, 0, item);
    const int64_t all = begin + count + sum(team, item + 1, last + 1);
    const int64_t of_field = begins ? count + sum(team, item + 1, item + parts) : 0;
    const Range range = list.range[f];
    const Section part = part_of(range.count, item % parts, parts);
    const uint32_t* position = list.position + range.begin;
    const float* value = list.value + range.begin;
    const int64_t first_begin = part.size() > 0 ? run_begin(position, part.from) : 0;
    if (copies) {
      copy(team, part, position, value, begin);
      position = to.position + begin;
      value = to.value + begin;
    } else {
      position += part.from;
      value += part.from;
    }
    std::byte* values = data + layout.header;
    team.update(
        count, [&](int64_t i) { return value[i]; },
        [&](int64_t i, float x) { write_value<Value>(values, begin + i, x); });
    std::byte* indices = data + layout.end(all);
    if (number == 2) {
      auto* runs = reinterpret_cast<uint16_t*>(indices) + begin;
      team.fill(count, runs, [&](int64_t i) {
        return static_cast<uint16_t>(position[i] - (i > 0 ? run_begin(position, i) : first_begin));
      });
    } else if (number == 4) {
      auto* as_it_is = reinterpret_cast<uint32_t*>(indices) + begin;
      team.fill(count, as_it_is, [&](int64_t i) { return position[i]; });
    }
    team.once([&] {
      if (begins && copies) to.range[f] = {begin, of_field};
      if (begins && f < stated)
        reinterpret_cast<uint32_t*>(data)[f] = static_cast<uint32_t>(of_field);
      if (item == last) end(all);
    });
  }

 private:
  WISP_HD int64_t sum(const Team& team, int64_t from, int64_t to_item) const {
    return sum_of(team, from, to_item, [this](int64_t item) { return count_of(item); });
  }
  WISP_HD int64_t count_of(int64_t item) const {
    return entries ? entries[item] : list.range[item].count;
  }
  WISP_HD void copy(const Team& team, const Section& part, const uint32_t* position,
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
  /// Ends the payload: the zeros between the parts, and the totals for other kernels.
  WISP_HD void end(int64_t all) const {
    *all_entries = all;
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

}  // namespace

const IndexFormat& SparseWire::index(const UnitSpec& spec, const Room& room) const {
  return index_format(indices_, spec, room, packed::value_bits(values_));
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
  const int64_t parts = parts_of(stream, packed::most_entries(spec, room));
  const int64_t each = room.of(spec) / (fields * parts);
  const bool natural = values_ == WireFormat::natural;
  const auto escape = static_cast<uint32_t>(format.escape());
  const bool counts = escape > 0 || parts > 1;
  if (counts) {
    parallel_teams(stream, fields * parts, CountParts{list, parts, escape, scratch.of_part}, each);
  }
  dispatch_wire(values_, [&]<class Value>(Value) {
    parallel_teams(stream, fields * parts,
                   Pack<Value>{list, fields, stated_counts(format, spec), parts,
                               counts ? scratch.of_part : nullptr, escape, format.number(), layout,
                               outlet.data, outlet.used, scratch.entries, scratch.offset,
                               scratch.list, escape > 0 || natural},
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

}  // namespace wisp
