#include "core/base/narrow.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

TEST(Narrow, KeepsWhatFits) {
  EXPECT_EQ(narrow<uint32_t>(0, "bytes"), 0u);
  EXPECT_EQ(narrow<uint32_t>(4'294'967'295, "bytes"), 4'294'967'295u);
  EXPECT_EQ(narrow<int>(2'147'483'647, "bytes"), 2'147'483'647);
  EXPECT_EQ(narrow<int>(-2'147'483'648, "bytes"), INT32_MIN);
}

TEST(Narrow, RefusesWhatDoesNotFit) {
  EXPECT_EQ(error_of([] { narrow<uint32_t>(4'294'967'296, "bytes of a message"); }),
            "bytes of a message: 4294967296, expected 0 to 4294967295, which fit into 32 bits");
  EXPECT_NE(error_of([] { narrow<uint32_t>(-1, "bytes"); }), "no error");
  EXPECT_NE(error_of([] { narrow<int>(2'147'483'648, "bytes"); }), "no error");
  EXPECT_NE(error_of([] { narrow<int>(INT64_MIN, "bytes"); }), "no error");
}

}  // namespace
}  // namespace wisp
