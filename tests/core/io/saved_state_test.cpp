#include "core/io/saved_state.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

TEST(TensorPart, HasItsRangeInItsName) {
  EXPECT_EQ(part_name({"owner_residual/a.weight", 128, 256}), "owner_residual/a.weight[128:256]");
  const auto part = part_of_name("owner_residual/a.weight[128:256]");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->whole, "owner_residual/a.weight");
  EXPECT_EQ(part->begin, 128);
  EXPECT_EQ(part->end, 256);
}

TEST(TensorPart, IsNoOtherName) {
  for (const char* name :
       {"", "]", "a", "a]", "a[]", "a[:]", "a[1]", "a[1:]", "a[:2]", "a[2:1]", "a[-1:2]", "a[1:2",
        "a[1:2]b", "a[1:x]", "a:[1]", "a[1 :2]", "a[1:99999999999999999999]"})
    EXPECT_FALSE(part_of_name(name)) << name;
}

}  // namespace
}  // namespace wisp
