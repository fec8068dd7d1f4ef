#include "core/loops/parallel_row_parts.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/copy.h"
#include "tests/support/devices.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// Counts how often an element is met, with its row and column.
struct CountPartVisits {
  struct Shared {};
  int32_t* visits;
  int64_t columns;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t row, int64_t begin, int64_t end,
                          Shared&) const {
    int32_t* at = visits + row * columns + begin;
    team.each(end - begin, [&](int64_t c) { at[c] += static_cast<int32_t>(row + begin + c) + 1; });
  }
};

void expect_each_once(const Device& device) {
  for (const int64_t rows : {0, 1, 3, 700}) {
    for (const int64_t columns : {0, 1, 15, 16, 512, 513, 650, 1500}) {
      SCOPED_TRACE(concat(device.str(), ": ", rows, " x ", columns));
      TestContext test({.compute = DType::f32, .device = device});
      const Tensor visits = test.context.zeros({rows, columns}, DType::i32);
      parallel_row_parts(test.stream, rows, columns,
                         CountPartVisits{visits.data<int32_t>(), columns});
      const Tensor found = fetch(test.stream, visits);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t c = 0; c < columns; ++c)
          ASSERT_EQ(found.data<int32_t>()[row * columns + c], row + c + 1) << row << ", " << c;
    }
  }
}

TEST(ParallelRowParts, AreAllOfAllRows) {
  expect_each_once({});
  const ShuffledTeams shuffled(7);
  expect_each_once({});
}

class DeviceRowParts : public DeviceTest {};

TEST_F(DeviceRowParts, AreAllOfAllRows) { expect_each_once(first_device()); }

TEST(ParallelRowParts, AreOfWholeLanesAndAboutAsLong) {
  for (int64_t columns = 1; columns < 5000; columns += 7) {
    EXPECT_EQ(parallel::part_columns(false, columns), columns);
    const int64_t part = parallel::part_columns(true, columns);
    const int64_t parts = (columns + part - 1) / part;
    if (columns <= parallel::kPartColumns) {
      EXPECT_EQ(parts, 1) << columns;
      continue;
    }
    EXPECT_EQ(part % parallel::kLanes, 0) << columns;
    EXPECT_LE(part, parallel::kPartColumns) << columns;
    EXPECT_GE(columns - (parts - 1) * part, part / 2) << columns << ": the last one";
    EXPECT_EQ(parallel::part_columns(true, columns, parallel::kLanes), parallel::kLanes);
  }
}

}  // namespace
}  // namespace wisp
