#include <gtest/gtest.h>

#include "data/decoding/image_codec.h"
#include "data/decoding/image_file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

TEST(ImageCodec, SaysWhatIsMissingInThisBuild) {
  const char* expected =
      "this build has no OpenCV, which reads photos: install libopencv-imgcodecs-dev and build "
      "again";
  EXPECT_EQ(error_of([] { decode_image("", 3, Orientation::applied); }), expected);
  const TempDir dir;
  EXPECT_EQ(error_of([&] { write_image(dir / "a.png", Tensor({1, 1, 3}, DType::u8)); }), expected);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace wisp
