#include "core/loops/parallel_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/test_context.h"

namespace wisp {
namespace {

struct CountVisits {
  struct Shared {};
  int32_t* visits;
  RowTable<RangeRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const RangeRow& row = table.row_of(item);
    int32_t* at = visits + row.from(item);
    team.each(row.count(item), [&](int64_t i) { ++at[i]; });
  }
};

/// Up to more ranges than a table holds; some are empty and one has several chunks.
TEST(ParallelRows, GoThroughEachRangeOnce) {
  TestContext test;
  for (const int64_t ranges :
       {int64_t{1}, RowTable<RangeRow>::kMost, 2 * RowTable<RangeRow>::kMost + 1}) {
    std::vector<int32_t> visits, expected;
    std::vector<RangeRow> rows;
    for (int64_t r = 0; r < ranges; ++r) {
      const auto begin = std::ssize(expected);
      expected.resize(static_cast<size_t>(begin + r % 3 * 5 + (r == 2 ? 3 * RangeRow::kChunk : 0)),
                      1);
      rows.push_back({begin, std::ssize(expected)});
      expected.push_back(0);
    }
    visits.resize(expected.size());
    parallel_rows(test.stream, CountVisits{visits.data()}, RangeRow::kChunk, [&](const auto& put) {
      for (const RangeRow& row : rows) put(row, row.chunks());
    });
    test.stream.synchronize();
    EXPECT_EQ(visits, expected) << ranges;
  }
}

}  // namespace
}  // namespace wisp
