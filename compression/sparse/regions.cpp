#include "compression/sparse/regions.h"

namespace wisp {
namespace {

constexpr int64_t kCuts = kCutWords + 1;

/// The regions of one field.
struct Borders {
  const int64_t* cuts;  // all zero: even regions
  int64_t numel;
  int workers;

  WISP_HD int64_t cut(int64_t sixteenth) const {
    if (sixteenth <= 0) return 0;
    if (sixteenth >= kCuts) return numel;
    return cuts[kCutWords - 1] == 0 ? numel * sixteenth / kCuts : cuts[sixteenth - 1];
  }
  /// Where the region of `rank` begins.
  WISP_HD int64_t of(int64_t rank) const {
    const int64_t place = kCuts * rank;
    const int64_t low = cut(place / workers);
    return low + (cut(place / workers + 1) - low) * (place % workers) / workers;
  }
  /// The range of a list's field that lies in a region.
  WISP_HD Range part(const uint32_t* position, const Range& range, int64_t rank) const {
    const uint32_t* first = position + range.begin;
    const int64_t begin = sparse::count_below(first, range.count, of(rank));
    const int64_t end = sparse::count_below(first, range.count, of(rank + 1));
    return {range.begin + begin, end > begin ? end - begin : 0};
  }
};

/// One worker's cuts; those that stand if it selected too little to say.
struct ProposeCuts {
  SparseList list;
  const Range* range;
  Borders borders;
  bool counts;
  int64_t* out;
  WISP_HD void operator()(int64_t c) const {
    const int64_t entry = range->begin + (c + 1) * range->count / kCuts;
    out[c] = counts && range->count >= kCuts ? int64_t{list.position[entry]} : borders.cut(c + 1);
  }
};

/// Means, ascending whatever the sums are.
struct AdoptCuts {
  const int64_t* sum;
  int64_t workers, numel;
  int64_t* cuts;
  WISP_HD void operator()() const {
    int64_t least = 0;
    for (int64_t c = 0; c < kCutWords; ++c) {
      const int64_t mean = sum[c] / workers;
      if (mean > least) least = mean < numel ? mean : numel;
      cuts[c] = least;
    }
  }
};

/// Takes at most `limit` entries of each region, in cyclic order from a drawn one.
struct TakeParts {
  SparseList from;
  const Range* range;
  Borders borders;
  int64_t limit;
  uint32_t start;
  SparseList into;
  int64_t begin, capacity;
  WISP_HD bool operator()(int64_t i) const {
    const int64_t at = range->begin + i;
    int64_t rank = 0;
    while (rank + 1 < borders.workers && borders.of(rank + 1) <= from.position[at]) ++rank;
    const Range part = borders.part(from.position, *range, rank);
    return part.count <= limit || (at - part.begin + start % part.count) % part.count < limit;
  }
  WISP_HD void emit(int64_t at, int64_t i) const {
    into.position[begin + at] = from.position[range->begin + i];
    into.value[begin + at] = from.value[range->begin + i];
  }
};

/// Which of a list's entries are each region's.
struct FindParts {
  SparseList list;
  const Range* range;
  Borders borders;
  int64_t fields;
  Range* part;  // of the field in region 0; the next region's is `fields` behind
  WISP_HD void operator()(int64_t rank) const {
    part[rank * fields] = borders.part(list.position, *range, rank);
  }
};

}  // namespace

void propose_cuts(const Stream& stream, const UnitSpec& spec, const SparseList& list, bool counts,
                  const int64_t* cuts, int64_t* out) {
  for (size_t f = 0; f < spec.fields.size(); ++f, cuts += kCutWords, out += kCutWords) {
    parallel_for(stream, kCutWords,
                 ProposeCuts{list, list.range + f, {cuts, spec.fields[f].numel, 1}, counts, out});
  }
}

void adopt_cuts(const Stream& stream, const UnitSpec& spec, const int64_t* sum, int workers,
                int64_t* cuts) {
  for (const Field& field : spec.fields) {
    run_once(stream, AdoptCuts{sum, workers, field.numel, cuts});
    sum += kCutWords;
    cuts += kCutWords;
  }
}

void take_parts(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
                const SparseList& from, const Room& room, const Room& part_room,
                const int64_t* cuts, const SparseList& into, Range* part, std::byte* scratch) {
  const auto fields = static_cast<int64_t>(spec.fields.size());
  clear_list(stream, spec, room, into);
  int64_t begin = 0;
  for (size_t f = 0; f < spec.fields.size(); ++f, cuts += kCutWords) {
    const Field& field = spec.fields[f];
    const int64_t most = room.of(field);
    const Borders borders{cuts, field.numel, info.workers};
    const Philox random(info.seed, static_cast<uint64_t>(info.step), field.key);
    Range* range = into.range + f;
    parallel_select_counted(stream, &from.range[f].count, most,
                            TakeParts{from, from.range + f, borders, part_room.of(field),
                                      random.bits(2), into, begin, most},
                            &range->count, scratch);
    parallel_for(stream, info.workers, FindParts{into, range, borders, fields, part + f});
    begin += most;
  }
}

}  // namespace wisp
