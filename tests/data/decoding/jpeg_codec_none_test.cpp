#include <gtest/gtest.h>

#include "data/decoding/jpeg_codec.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

TEST(JpegCodec, SaysWhatIsMissingInThisBuild) {
  EXPECT_FALSE(has_jpeg_codec());
  EXPECT_EQ(
      error_of([] {
        decode_jpeg("", {0, 0, 1, 1});
      }),
      "this build has no libjpeg-turbo, which reads JPEGs: install libjpeg-dev and build again");
}

}  // namespace
}  // namespace wisp
