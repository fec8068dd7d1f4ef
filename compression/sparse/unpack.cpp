#include "compression/sparse/pack_layout.h"

namespace wisp {
namespace {

using packed::layout_of, packed::Scratch, packed::stated_counts, packed::sum_of,
    packed::ValueLayout;

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
