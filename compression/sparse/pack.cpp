#include "compression/sparse/pack_layout.h"

namespace wisp {
namespace {

using packed::layout_of, packed::Scratch, packed::stated_counts, packed::sum_of,
    packed::ValueLayout;

/// The field position at which the run before entry i begins.
WISP_HD inline int64_t run_begin(const uint32_t* position, int64_t i) {
  return i > 0 ? int64_t{position[i - 1]} + 1 : 0;
}

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

}  // namespace wisp
