#include "compression/sparse/regions.h"

#include "core/base/error.h"
#include "core/loops/parallel_rows.h"

namespace wisp {
namespace {

constexpr int64_t kCuts = kCutWords + 1;

/// The regions of one field.
struct Borders {
  const int64_t* cuts;  // all zero: even regions
  int64_t numel, ranks;

  WISP_HD int64_t cut(int64_t sixteenth) const {
    if (sixteenth <= 0) return 0;
    if (sixteenth >= kCuts) return numel;
    return cuts[kCutWords - 1] == 0 ? numel * sixteenth / kCuts : cuts[sixteenth - 1];
  }
  /// Begin of the region of `rank`.
  WISP_HD int64_t of(int64_t rank) const {
    const int64_t place = kCuts * rank;
    const int64_t low = cut(place / ranks);
    return low + (cut(place / ranks + 1) - low) * (place % ranks) / ranks;
  }
  /// The range of a field's entries that lies in a region.
  WISP_HD Range part(const uint32_t* position, const Range& range, int64_t rank) const {
    const uint32_t* first = position + range.begin;
    const int64_t begin = sparse::count_below(first, range.count, of(rank));
    const int64_t end = sparse::count_below(first, range.count, of(rank + 1));
    return {range.begin + begin, end > begin ? end - begin : 0};
  }
};

/// A field for kernels. At most `limit` entries of a region are taken, in cyclic order from
/// `start`.
struct RegionRow {
  int64_t first_item, field;
  int64_t numel, limit, start;
};

/// Proposes one worker's cuts; repeats the current ones if it selected too few entries.
struct ProposeCuts {
  struct Shared {};
  SparseList list;
  const int64_t* cuts;
  bool counts;
  int64_t* out;
  RowTable<RegionRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const RegionRow& row = table.row[item];
    const Range range = list.range[row.field];
    const Borders borders{cuts + kCutWords * row.field, row.numel, 1};
    int64_t* to = out + kCutWords * row.field;
    team.each(kCutWords, [&](int64_t c) {
      const int64_t entry = range.begin + (c + 1) * range.count / kCuts;
      to[c] = counts && range.count >= kCuts ? int64_t{list.position[entry]} : borders.cut(c + 1);
    });
  }
};

/// Adopts the means of the workers' cuts, forced to ascend.
struct AdoptCuts {
  struct Shared {};
  const int64_t* sums;
  int64_t summands;
  int64_t* cuts;
  RowTable<RegionRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const RegionRow& row = table.row[item];
    const int64_t* sum = sums + kCutWords * row.field;
    int64_t* to = cuts + kCutWords * row.field;
    team.once([&] {
      int64_t least = 0;
      for (int64_t c = 0; c < kCutWords; ++c) {
        const int64_t mean = sum[c] / summands;
        if (mean > least) least = mean < row.numel ? mean : row.numel;
        to[c] = least;
      }
    });
  }
};

struct TakeParts {
  struct Shared {};
  SparseList from;
  const int64_t* cuts;
  int64_t ranks, fields;
  SparseList into;
  Range* part;  // indexed by region, then by field
  RowTable<RegionRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const RegionRow& row = table.row[item];
    const Range range = from.range[row.field];
    const Borders borders{cuts + kCutWords * row.field, row.numel, ranks};
    team.each(ranks, [&](int64_t rank) {
      part[rank * fields + row.field] = borders.part(from.position, range, rank);
    });
    const int64_t count = team.select(
        range.count,
        [&](int64_t i) {
          const int64_t at = range.begin + i;
          int64_t rank = 0;
          while (rank + 1 < ranks && borders.of(rank + 1) <= from.position[at]) ++rank;
          const Range region = part[rank * fields + row.field];
          return region.count <= row.limit ||
                 (at - region.begin + row.start % region.count) % region.count < row.limit;
        },
        [&](int64_t at, int64_t i) {
          into.position[range.begin + at] = from.position[range.begin + i];
          into.value[range.begin + at] = from.value[range.begin + i];
        });
    const Range taken{range.begin, count};
    team.each(ranks, [&](int64_t rank) {
      part[rank * fields + row.field] = borders.part(into.position, taken, rank);
    });
    team.once([&] { into.range[row.field] = taken; });
  }
};

/// Runs a kernel over the fields. complete(field, row) completes the row of a field.
template <class Kernel, class Complete>
void over_fields(const Stream& stream, const UnitSpec& spec, const Kernel& kernel, int64_t elements,
                 const Complete& complete) {
  parallel_rows(stream, kernel, elements, [&](const auto& put) {
    RegionRow row{};
    for (const Field& field : spec.fields) {
      row.numel = field.numel;
      complete(field, row);
      put(row, 1);
      ++row.field;
    }
  });
}

}  // namespace

void propose_cuts(const Stream& stream, const UnitSpec& spec, const SparseList& list, bool counts,
                  const int64_t* cuts, int64_t* out) {
  over_fields(stream, spec, ProposeCuts{list, cuts, counts, out}, kCutWords,
              [](const Field&, RegionRow&) {});
}

void adopt_cuts(const Stream& stream, const UnitSpec& spec, const int64_t* sum, int summands,
                int64_t* cuts) {
  over_fields(stream, spec, AdoptCuts{sum, summands, cuts}, kCutWords,
              [](const Field&, RegionRow&) {});
}

void check_cuts(std::span<const int64_t> numel_of_field, const Tensor& cuts) {
  const int64_t* cut = cuts.data<int64_t>();
  for (size_t field = 0; field < numel_of_field.size(); ++field) {
    int64_t least = 0;
    for (int64_t c = 0; c < kCutWords; ++c, ++cut) {
      WISP_CHECK(*cut >= least && *cut <= numel_of_field[field], "cut ", c, " of field ", field,
                 " is ", *cut, ", expected ", least, " to ", numel_of_field[field],
                 ", because cuts ascend");
      least = *cut;
    }
  }
}

void take_parts(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
                const SparseList& from, const Room& room, const Room& part_room,
                const int64_t* cuts, const SparseList& into, Range* part) {
  const auto fields = std::ssize(spec.fields);
  over_fields(stream, spec, TakeParts{from, cuts, info.ranks, fields, into, part},
              room.of(spec) / fields, [&](const Field& field, RegionRow& row) {
                row.limit = part_room.of(field);
                row.start = info.random(field).bits(2);
              });
}

}  // namespace wisp
