#include "core/io/glob.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

TEST(Glob, FitsTheWholeText) {
  for (const char* pattern : {"*", "a.bc.weight", "a.*", "*weight", "*.b?.*", "**t", "a*c*t", "?*"})
    EXPECT_TRUE(glob(pattern, "a.bc.weight")) << pattern;
  for (const char* pattern : {"", "a.bc", "*.bias", "a.?.weight", "weight", "*x*", "a.bc.weight?"})
    EXPECT_FALSE(glob(pattern, "a.bc.weight")) << pattern;
  EXPECT_TRUE(glob("", ""));
}

}  // namespace
}  // namespace wisp
