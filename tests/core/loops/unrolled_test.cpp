#include "core/loops/unrolled.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace wisp {
namespace {

TEST(Unrolled, TakesEachStepOnceSeveralAtATimeAndThenOne) {
  using Calls = std::vector<std::pair<int64_t, int64_t>>;
  const auto calls_of = [](int64_t count) {
    Calls calls;
    unrolled<4>(count, [&](int64_t i, auto n) { calls.emplace_back(i, n.value); });
    return calls;
  };
  EXPECT_EQ(calls_of(0), Calls{});
  EXPECT_EQ(calls_of(3), (Calls{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(calls_of(4), (Calls{{0, 4}}));
  EXPECT_EQ(calls_of(10), (Calls{{0, 4}, {4, 4}, {8, 1}, {9, 1}}));
}

}  // namespace
}  // namespace wisp
