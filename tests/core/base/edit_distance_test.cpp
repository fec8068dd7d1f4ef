#include "core/base/edit_distance.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

TEST(EditDistance, CountsInsertionsRemovalsAndReplacements) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("optimizer.lrr", "optimizer.lr"), 1u);
}

}  // namespace
}  // namespace wisp
