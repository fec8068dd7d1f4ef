#include "compression/sparse/sparse_index.h"

#include <array>
#include <string>

namespace wisp {
namespace {

/// In the order of Indices, behind `shortest`.
std::array<const IndexFormat*, 4> formats() {
  return {&runs16_format(), &u32_format(), &gamma_format(), &bitmap_format()};
}

/// Positions as they are.
struct WritePosition {
  const uint32_t* position;
  IndexSpace part;
  WISP_HD void operator()(int64_t e) const {
    reinterpret_cast<uint32_t*>(part.data + *part.offset)[e] = position[e];
  }
};

struct ReadPosition {
  IndexPart part;
  uint32_t* position;
  WISP_HD void operator()(int64_t e) const {
    position[e] = reinterpret_cast<const uint32_t*>(part.data + *part.offset)[e];
  }
};

struct Finish {
  const Range* last;
  IndexSpace part;
  int64_t* used;
  WISP_HD void operator()() const { *used = *part.offset + 4 * (last->begin + last->count); }
};

struct Count {
  const Range* last;
  int64_t* entries;
  WISP_HD void operator()() const { *entries = last->begin + last->count; }
};

/// How many positions a chunk of a field's entries is long.
struct Lengths {
  const Range* range;
  const uint32_t* gap;
  int64_t* chunk;
  WISP_HD void operator()(int64_t c) const {
    const sparse::Span span(*range, c);
    int64_t length = 0;
    for (int64_t e = span.from; e < span.to; ++e) length += gap[e];
    chunk[c] = length;
  }
};

struct AddGaps {
  const Range* range;
  const int64_t* chunk;
  uint32_t* position;  // gaps before
  WISP_HD void operator()(int64_t c) const {
    const sparse::Span span(*range, c);
    int64_t next = chunk[c];
    for (int64_t e = span.from; e < span.to; ++e) {
      next += position[e];
      const bool good = position[e] > 0 && next <= kNowhere;
      position[e] = good ? static_cast<uint32_t>(next - 1) : kNowhere;
    }
  }
};

class U32 final : public IndexFormat {
 public:
  const char* name() const override { return "u32"; }
  int64_t most_bytes(const UnitSpec& spec, const Room& room) const override {
    return 4 * room.of(spec);
  }
  int64_t least_bytes(int64_t entries) const override { return 4 * entries; }
  int64_t scratch_bytes(const UnitSpec&, const Room&) const override { return 8; }

  void write(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
             const IndexSpace& part, int64_t* used, std::byte* scratch) const override {
    auto* entries = reinterpret_cast<int64_t*>(scratch);
    const Range* last = list.range + spec.fields.size() - 1;
    run_once(stream, Count{last, entries});
    parallel_for_counted(stream, entries, room.of(spec), WritePosition{list.position, part});
    run_once(stream, Finish{last, part, used});
  }
  void read(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
            const IndexPart& part, int64_t, std::byte* scratch) const override {
    auto* entries = reinterpret_cast<int64_t*>(scratch);
    run_once(stream, Count{list.range + spec.fields.size() - 1, entries});
    parallel_for_counted(stream, entries, room.of(spec), ReadPosition{part, list.position});
  }
  int64_t end_on_host(const UnitSpec& spec, const SparseList& list, const IndexPart& part,
                      int64_t) const override {
    const Range& last = list.range[spec.fields.size() - 1];
    return *part.offset + 4 * (last.begin + last.count);
  }
};

}  // namespace

const IndexFormat& u32_format() {
  static const U32 format;
  return format;
}

void gaps_to_positions(const Stream& stream, const UnitSpec& spec, const Room& room,
                       const SparseList& list, std::byte* scratch) {
  auto* chunk = reinterpret_cast<int64_t*>(scratch);
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const int64_t chunks = sparse::chunks_of(room.of(spec.fields[f]));
    const Range* range = list.range + f;
    parallel_for(stream, chunks, Lengths{range, list.position, chunk});
    run_once(stream, sparse::SumBefore{chunk, chunks});
    parallel_for(stream, chunks, AddGaps{range, chunk, list.position});
  }
}

int64_t gaps_scratch_bytes(const UnitSpec& spec, const Room& room) {
  return 8 * sparse::most_chunks(spec, room);
}

const IndexFormat& index_format(Indices indices, const UnitSpec& spec, const Room& room,
                                int64_t value_bits) {
  if (indices != Indices::shortest) return *formats()[static_cast<size_t>(indices) - 1];
  const auto bits = [&](const IndexFormat& format) {
    const int64_t counts = format.counts_all() ? 4 : 0;
    const Room entries = with_escapes(format, room);
    return 8 * (format.most_bytes(spec, entries) + counts) + value_bits * entries.of(spec);
  };
  const IndexFormat* best = formats()[0];
  for (const IndexFormat* format : formats())
    if (bits(*format) < bits(*best)) best = format;
  return *best;
}

Indices bind_indices(Config& config) {
  std::string indices = "auto";
  config.bind(
      "compression.indices", indices,
      "how sparse methods send positions: runs16, u32, gamma, bitmap, or auto (the shortest "
      "at this ratio)");
  if (indices == "auto") return Indices::shortest;
  for (size_t i = 0; i < formats().size(); ++i)
    if (indices == formats()[i]->name()) return static_cast<Indices>(i + 1);
  throw Error(concat(config.where("compression.indices"), ": compression.indices is '", indices,
                     "', expected auto, runs16, u32, gamma or bitmap"));
}

}  // namespace wisp
