// Positions as u16 runs: the zeros before each entry, counted from the field's entry before. A gap
// of 65536 or more is cut by entries of run 65535 and value 0, each 65536 positions long; a field's
// k entries leave n - k zeros, so it needs at most (n - k) / 65536 of them. Source: Lin et al.
// 2018, section 4; the escape is ours.
#include "compression/sparse/sparse_index.h"

namespace wisp {
namespace {

using sparse::chunks_of;
using sparse::Span;

struct WriteRuns {
  const Range* range;
  const uint32_t* position;
  IndexSpace part;
  WISP_HD void operator()(int64_t c) const {
    auto* run = reinterpret_cast<uint16_t*>(part.data + *part.offset);
    const Span span(*range, c);
    for (int64_t e = span.from; e < span.to; ++e) {
      const int64_t next = e > range->begin ? int64_t{position[e - 1]} + 1 : 0;
      run[e] = static_cast<uint16_t>(position[e] - next);
    }
  }
};

struct ReadRuns {
  const Range* range;
  IndexPart part;
  uint32_t* gap;
  WISP_HD void operator()(int64_t i) const {
    const int64_t e = range->begin + i;
    gap[e] = reinterpret_cast<const uint16_t*>(part.data + *part.offset)[e] + 1u;
  }
};

struct Finish {
  const Range* last;
  IndexSpace part;
  int64_t* used;
  WISP_HD void operator()() const { *used = *part.offset + 2 * (last->begin + last->count); }
};

class Runs16 final : public IndexFormat {
 public:
  const char* name() const override { return "runs16"; }
  int64_t escape() const override { return 1 << 16; }
  bool counts_all() const override { return false; }
  int64_t alignment() const override { return 2; }
  int64_t most_bytes(const UnitSpec& spec, const Room& room) const override {
    return 2 * room.of(spec);
  }
  int64_t least_bytes(int64_t entries) const override { return 2 * entries; }
  int64_t scratch_bytes(const UnitSpec& spec, const Room& room) const override {
    return gaps_scratch_bytes(spec, room);
  }

  void write(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
             const IndexSpace& part, int64_t* used, std::byte*) const override {
    for (size_t f = 0; f < spec.fields.size(); ++f) {
      parallel_for(stream, chunks_of(room.of(spec.fields[f])),
                   WriteRuns{list.range + f, list.position, part});
    }
    run_once(stream, Finish{list.range + spec.fields.size() - 1, part, used});
  }
  void read(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
            const IndexPart& part, int64_t, std::byte* scratch) const override {
    for (size_t f = 0; f < spec.fields.size(); ++f) {
      const Range* range = list.range + f;
      parallel_for_counted(stream, &range->count, room.of(spec.fields[f]),
                           ReadRuns{range, part, list.position});
    }
    gaps_to_positions(stream, spec, room, list, scratch);
  }
  int64_t end_on_host(const UnitSpec& spec, const SparseList& list, const IndexPart& part,
                      int64_t) const override {
    const Range& last = list.range[spec.fields.size() - 1];
    return *part.offset + 2 * (last.begin + last.count);
  }
};

}  // namespace

const IndexFormat& runs16_format() {
  static const Runs16 format;
  return format;
}

}  // namespace wisp
