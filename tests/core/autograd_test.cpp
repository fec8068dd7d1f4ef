#include "core/autograd.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

TEST(Autograd, PlaceholderUntilOpsExist) { EXPECT_EQ(Shape({2, 3}).numel(), 6); }

}  // namespace
}  // namespace wisp
