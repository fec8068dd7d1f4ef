#include "core/base/recently_used.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

namespace wisp {
namespace {

/// A cache of integers, each ten times its key, and the number of integers made.
struct Maker {
  RecentlyUsed<int, std::unique_ptr<int>> kept;
  int made = 0;

  explicit Maker(int64_t most) : kept(most) {}
  int find(int key) {
    return *kept.find(key, [&] {
      ++made;
      return std::make_unique<int>(10 * key);
    });
  }
};

TEST(RecentlyUsed, MakesAThingOnce) {
  Maker maker(3);
  for (const int key : {1, 2, 3, 3, 1, 2}) EXPECT_EQ(maker.find(key), 10 * key);
  EXPECT_EQ(maker.made, 3);
  EXPECT_EQ(maker.kept.size(), 3);
}

TEST(RecentlyUsed, DropsWhatWasUsedLongestAgo) {
  Maker maker(3);
  for (const int key : {1, 2, 3, 1, 4}) maker.find(key);  // drops 2
  EXPECT_EQ(maker.kept.size(), 3);
  for (const int key : {1, 3, 4}) maker.find(key);
  EXPECT_EQ(maker.made, 4);
  EXPECT_EQ(maker.find(2), 20);
  EXPECT_EQ(maker.made, 5);
}

TEST(RecentlyUsed, StaysAsItWasIfNothingCouldBeMade) {
  Maker maker(2);
  for (const int key : {1, 2}) maker.find(key);
  const auto fail = []() -> std::unique_ptr<int> { throw std::runtime_error("no"); };
  EXPECT_THROW(maker.kept.find(3, fail), std::runtime_error);
  for (const int key : {1, 2}) maker.find(key);
  EXPECT_EQ(maker.made, 2);
  EXPECT_EQ(maker.kept.size(), 2);
}

}  // namespace
}  // namespace wisp
