#include "data/decoding/ppm.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/random_images.h"

namespace wisp {
namespace {

TEST(Ppm, HoldsTheRegionsOfAPicture) {
  const Tensor image = random_images({1, 5, 7, 3}).image(0);
  const std::string bytes = encode_ppm(image);
  EXPECT_TRUE(bytes.starts_with("P6\n7 5\n255\n"));
  EXPECT_TRUE(is_ppm(bytes));
  EXPECT_EQ(read_ppm_header(bytes).height, 5);
  EXPECT_EQ(read_ppm_header(bytes).width, 7);
  for (const Region& region : {Region{0, 0, 5, 7}, Region{2, 3, 2, 4}, Region{4, 6, 1, 1}}) {
    const Tensor part = decode_ppm(bytes, region);
    for (int64_t y = 0; y < region.height; ++y) {
      for (int64_t i = 0; i < 3 * region.width; ++i)
        EXPECT_EQ(part.data<uint8_t>()[y * 3 * region.width + i],
                  image.data<uint8_t>()[((region.top + y) * 7 + region.left) * 3 + i]);
    }
  }
}

TEST(Ppm, OfAnotherFormIsRefused) {
  const std::string damaged =
      "the header of the PPM is damaged, expected P6, width, height and 255";
  const std::string pixels(3 * 2, 'x');
  const auto refusal = [](const std::string& bytes) {
    return error_of([&] { read_ppm_header(bytes); });
  };
  EXPECT_EQ(refusal("P6\n2 1\n255\n" + pixels), "no error");
  EXPECT_EQ(refusal("P5\n2 1\n255\n" + pixels), "no PPM file");
  for (const char* head : {"P6\n", "P6\n2", "P6\n2 1", "P6\n0 1\n255\n", "P6\n-2 1\n255\n",
                           "P6\n2 1000001\n255\n", "P6\n2\n1\n255\n"})
    EXPECT_EQ(refusal(head + pixels), damaged) << head;
  EXPECT_EQ(refusal("P6\n2 1\n65535\n" + pixels),
            "the PPM has another depth than 8 bits, expected 255 behind width and height");
  EXPECT_EQ(refusal("P6\n2 1\n255\n" + pixels + "x"),
            "the PPM has 7 bytes of pixels, expected 6 for 1 x 2");
  EXPECT_EQ(error_of([&] {
              decode_ppm("P6\n2 1\n255\n" + pixels, {0, 0, 1, 3});
            }),
            "decode_ppm: the region is outside of the picture");
}

}  // namespace
}  // namespace wisp
