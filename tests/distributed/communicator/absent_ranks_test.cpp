#include "distributed/communicator/absent_ranks.h"

#include <gtest/gtest.h>

#include <map>

namespace wisp {
namespace {

using Ranks = std::vector<int>;

Ranks awaited(const Ranks& absent, std::map<int, Ranks> waits) {
  return last_awaited(absent, [&](int rank) { return waits[rank]; });
}

TEST(AbsentRanks, AreThoseThatWaitForNobody) {
  EXPECT_EQ(awaited({1, 3}, {}), (Ranks{1, 3}));
  EXPECT_EQ(awaited({3, 1}, {{1, {3}}}), (Ranks{3}));
  EXPECT_EQ(awaited({1}, {{1, {3, 2}}, {3, {4}}}), (Ranks{2, 4}));
}

TEST(AbsentRanks, WaitInACircleAreAllNamed) {
  EXPECT_EQ(awaited({1, 2}, {{1, {2}}, {2, {1}}}), (Ranks{1, 2}));
  EXPECT_EQ(awaited({1, 2}, {{1, {0}}, {2, {0}}, {0, {1, 2}}}), (Ranks{1, 2}));
  EXPECT_EQ(awaited({1}, {{1, {2}}, {2, {1, 5}}}), (Ranks{5}));
}

TEST(AbsentRanks, AreNamed) {
  EXPECT_EQ(absent_words({2}), "rank 2, which has not come");
  EXPECT_EQ(absent_words({0, 12}), "rank 0, rank 12, which have not come");
}

}  // namespace
}  // namespace wisp
