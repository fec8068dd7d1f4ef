#include "compression/sparse/pack.h"

namespace wisp {
namespace {

using sparse::chunks_of;
using sparse::most_chunks;
using sparse::Span;

/// Sizes of the part that holds values.
struct ValueLayout {
  int64_t header, each, alignment;  // each: bytes of a value; 0: natural
  WISP_HD int64_t size(int64_t entries) const {
    return each > 0 ? each * entries : entries + (entries + 7) / 8;
  }
  /// Where the indices begin.
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

/// The parts of a unit's scratch while it is packed or read: the list with its escapes, field after
/// field without gaps.
struct Scratch {
  int64_t* entries;
  int64_t* offset;  // of the indices
  int64_t* chunk;   // of one field's entries: where they begin in the list with escapes
  SparseList list;
  std::byte* format;

  Scratch(Cursor& cursor, const IndexFormat& index, const UnitSpec& spec, const Room& room)
      : entries(cursor.take<int64_t>(1)),
        offset(cursor.take<int64_t>(1)),
        chunk(cursor.take<int64_t>(most_chunks(spec, room))),
        list(cursor, static_cast<int64_t>(spec.fields.size()), room.of(spec)),
        format(cursor.take<std::byte>(index.scratch_bytes(spec, room))) {}
};

// ---------------------------------------------------------------- pack

/// How many entries a chunk of a list becomes: one each, and the escapes before it.
struct CountEntries {
  SparseList list;
  const Range* range;
  int64_t escape;
  int64_t* chunk;
  WISP_HD void operator()(int64_t c) const {
    const Span span(*range, c);
    int64_t entries = 0;
    for (int64_t j = span.from; j < span.to; ++j) {
      const int64_t next = j > range->begin ? int64_t{list.position[j - 1]} + 1 : 0;
      entries += 1 + (escape > 0 ? (list.position[j] - next) / escape : 0);
    }
    chunk[c] = entries;
  }
};

struct NumberEntries {
  const Range* from;
  int64_t* chunk;
  Range* to;
  bool first;       // field of the unit
  uint32_t* count;  // or null
  WISP_HD void operator()() const {
    const int64_t begin = first ? 0 : to[-1].begin + to[-1].count;
    int64_t total = begin;
    for (int64_t c = 0; c < chunks_of(from->count); ++c) {
      const int64_t here = chunk[c];
      chunk[c] = total;
      total += here;
    }
    *to = {begin, total - begin};
    if (count) *count = static_cast<uint32_t>(total - begin);
  }
};

struct AddEscapes {
  SparseList list;
  const Range* range;
  int64_t escape;
  const int64_t* chunk;
  SparseList to;
  WISP_HD void operator()(int64_t c) const {
    const Span span(*range, c);
    if (span.from >= span.to) return;
    int64_t entry = chunk[c];
    for (int64_t j = span.from; j < span.to; ++j, ++entry) {
      int64_t next = j > range->begin ? int64_t{list.position[j - 1]} + 1 : 0;
      for (; escape > 0 && list.position[j] - next >= escape; next += escape, ++entry) {
        to.position[entry] = static_cast<uint32_t>(next + escape - 1);
        to.value[entry] = 0.0f;
      }
      to.position[entry] = list.position[j];
      to.value[entry] = list.value[j];
    }
  }
};

struct PlaceIndices {
  const Range* last;
  ValueLayout layout;
  int64_t *entries, *offset;
  std::byte* padding;  // the payload, where zeros belong between the parts; or null
  WISP_HD void operator()() const {
    *entries = last->begin + last->count;
    *offset = layout.end(*entries);
    if (!padding) return;
    for (int64_t i = layout.header + layout.size(*entries); i < *offset; ++i)
      padding[i] = std::byte{0};
  }
};

template <class Value>
struct WriteValues {
  const float* value;
  const int64_t* entries;
  std::byte* out;
  WISP_HD void operator()(int64_t e) const {
    reinterpret_cast<Value*>(out)[e] = to_wire<Value>(value[e]);
  }
};

template <>
struct WriteValues<Natural> {
  const float* value;
  const int64_t* entries;
  std::byte* out;
  WISP_HD void operator()(int64_t e) const {
    auto* bytes = reinterpret_cast<uint8_t*>(out);
    bytes[e] = static_cast<uint8_t>(to_wire<Natural>(value[e]).bits & 0xffu);
    if (e % 8 > 0) return;
    uint32_t signs = 0;
    for (int64_t i = 0; i < 8 && e + i < *entries; ++i)
      signs |= (float_bits(value[e + i]) >> 31) << i;
    bytes[*entries + e / 8] = static_cast<uint8_t>(signs);
  }
};

// ---------------------------------------------------------------- unpack

/// A field's entries; counts beyond the payload or the field are cut.
struct SplitField {
  const uint32_t* stated;  // or null: all that are left
  int64_t limit, most;
  Range* range;
  bool first;
  WISP_HD void operator()() const {
    const int64_t begin = first ? 0 : range[-1].begin + range[-1].count;
    int64_t count = stated ? int64_t{*stated} : limit - begin;
    if (count > most) count = most;
    if (count > limit - begin) count = limit - begin;
    *range = {begin, count};
  }
};

template <class Value>
struct ReadValues {
  const std::byte* in;
  const int64_t* entries;
  float* value;
  WISP_HD void operator()(int64_t e) const {
    value[e] = static_cast<float>(reinterpret_cast<const Value*>(in)[e]);
  }
};

template <>
struct ReadValues<Natural> {
  const std::byte* in;
  const int64_t* entries;
  float* value;
  WISP_HD void operator()(int64_t e) const {
    const auto* bytes = reinterpret_cast<const uint8_t*>(in);
    Natural natural;
    natural.bits =
        static_cast<uint16_t>((uint32_t{bytes[*entries + e / 8]} >> e % 8 & 1u) << 8 | bytes[e]);
    value[e] = static_cast<float>(natural);
  }
};

/// What a payload states, as far as its size tells.
struct Stated {
  const uint32_t* counts;
  int64_t fields;  // whose counts there are
  int64_t limit;   // entries that its size allows
};

/// What is wrong with a payload in host memory; empty if nothing is.
std::string complaint(const IndexFormat& format, const UnitSpec& spec, const Room& room,
                      const SparseList& list, const Stated& stated, const IndexPart& part,
                      int64_t bytes) {
  int64_t at = 0;
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const bool last = static_cast<int64_t>(f) == stated.fields;
    const int64_t left = stated.limit - at;
    const int64_t here = last ? left : int64_t{stated.counts[f]};
    const int64_t most = room.of(spec.fields[f]);
    if (here > most)
      return concat("field ", f, " states ", here, " entries, expected at most ", most);
    if (here > left) return concat("field ", f, " states ", here, " entries, ", left, " are left");
    at += here;
  }
  const int64_t end = format.end_on_host(spec, list, part, bytes);
  if (end < 0) return concat("its ", format.name(), " is not of as many entries as it states");
  if (end != bytes) return concat("its ", format.name(), " ends at byte ", end, " of ", bytes);
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    int64_t before = -1;
    for (int64_t j = 0; j < list.range[f].count; ++j) {
      const int64_t position = list.position[list.range[f].begin + j];
      const int64_t numel = spec.fields[f].numel;
      if (position >= numel)
        return concat("field ", f, "'s entry ", j, " is at position ", position, ", it has ", numel,
                      " elements");
      if (position <= before)
        return concat("field ", f, "'s entry ", j, " is at position ", position,
                      ", not behind the one before");
      before = position;
    }
  }
  return {};
}

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
  auto* counts = reinterpret_cast<uint32_t*>(outlet.data);
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const int64_t chunks = chunks_of(room.of(spec.fields[f]));
    const Range* range = list.range + f;
    const bool stated = static_cast<int64_t>(f) < stated_counts(format, spec);
    parallel_for(stream, chunks, CountEntries{list, range, format.escape(), scratch.chunk});
    run_once(stream, NumberEntries{range, scratch.chunk, scratch.list.range + f, f == 0,
                                   stated ? counts + f : nullptr});
    parallel_for(stream, chunks,
                 AddEscapes{list, range, format.escape(), scratch.chunk, scratch.list});
  }
  const Range* last = scratch.list.range + spec.fields.size() - 1;
  run_once(stream, PlaceIndices{last, layout, scratch.entries, scratch.offset, outlet.data});
  dispatch_wire(values_, [&]<class Value>(Value) {
    parallel_for_counted(
        stream, scratch.entries, entries.of(spec),
        WriteValues<Value>{scratch.list.value, scratch.entries, outlet.data + layout.header});
  });
  format.write(stream, spec, entries, scratch.list, {outlet.data, scratch.offset}, outlet.used,
               scratch.format);
}

SparseList SparseWire::unpack(const Stream& stream, const UnitSpec& spec, const Room& room,
                              const Payload& payload, std::byte* memory) const {
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
  const Stated stated{reinterpret_cast<const uint32_t*>(payload.data), stated_counts(format, spec),
                      limit};
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const bool states = static_cast<int64_t>(f) < stated.fields;
    run_once(stream, SplitField{states ? stated.counts + f : nullptr, limit,
                                entries.of(spec.fields[f]), list.range + f, f == 0});
  }
  const Range* last = list.range + spec.fields.size() - 1;
  run_once(stream, PlaceIndices{last, layout, scratch.entries, scratch.offset, nullptr});
  dispatch_wire(values_, [&]<class Value>(Value) {
    parallel_for_counted(
        stream, scratch.entries, entries.of(spec),
        ReadValues<Value>{payload.data + layout.header, scratch.entries, list.value});
  });
  const IndexPart part{payload.data, scratch.offset};
  format.read(stream, spec, entries, list, part, payload.bytes, scratch.format);
  if (!stream.device().is_cuda()) {
    stream.submit([&format, spec, entries, list, stated, part, payload] {
      const std::string wrong = complaint(format, spec, entries, list, stated, part, payload.bytes);
      WISP_CHECK(wrong.empty(), "sparse payload of rank ", payload.from, ": ", wrong);
    });
  }
  return list;
}

void SparseWire::decode(const Stream& stream, const UnitSpec& spec, const Room& room,
                        const Payload& payload, float weight, bool add, const Tensor& into,
                        std::byte* scratch) const {
  const SparseList list = unpack(stream, spec, room, payload, scratch);
  if (!add) clear_fields(stream, spec, into);
  add_list(stream, spec, with_escapes(index(spec, room), room), list, weight, into.data<float>());
}

}  // namespace wisp
