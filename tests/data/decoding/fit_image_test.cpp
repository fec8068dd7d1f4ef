#include "data/decoding/fit_image.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/drawn_pictures.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

Tensor grey(int64_t height, int64_t width, const std::vector<int>& pixels) {
  Tensor image({height, width, 1}, DType::u8);
  for (int64_t i = 0; i < image.numel(); ++i)
    image.data<uint8_t>()[i] = static_cast<uint8_t>(pixels[static_cast<size_t>(i)]);
  return image;
}

TEST(FitImage, AveragesAreas) {
  const Tensor image = grey(2, 4,
                            {0, 10, 100, 101,  //
                             20, 30, 102, 103});
  EXPECT_EQ(pixels_of(fit_image(image, 1, 2)), std::vector<int>({15, 102}))
      << "101.5 is rounded up";
}

TEST(FitImage, AveragesPartsOfPixels) {
  // From three pixels to two: (1 a + 0.5 b) / 1.5 and (0.5 b + 1 c) / 1.5.
  const Tensor image = grey(3, 3, {30, 60, 90, 30, 60, 90, 30, 60, 90});
  EXPECT_EQ(pixels_of(fit_image(image, 2, 2)), std::vector<int>({40, 80, 40, 80}));
}

TEST(FitImage, InterpolatesBetweenCentres) {
  // The four pixels' centres are at 0.25, 0.75, 1.25 and 1.75, the two pixels' at 0.5 and 1.5.
  const Tensor image = grey(2, 2, {0, 100, 0, 100});
  const std::vector<int> row = {0, 25, 75, 100};
  std::vector<int> rows;
  for (int i = 0; i < 4; ++i) rows.insert(rows.end(), row.begin(), row.end());
  EXPECT_EQ(pixels_of(fit_image(image, 4, 4)), rows);
}

TEST(FitImage, TakesTheCentredPartOfTheAspect) {
  EXPECT_EQ(pixels_of(fit_image(grey(1, 5, {1, 2, 3, 4, 5}), 1, 1)), std::vector<int>({3}));
  EXPECT_EQ(pixels_of(fit_image(grey(6, 1, {1, 2, 3, 4, 5, 6}), 2, 1)), std::vector<int>({3, 4}));
  EXPECT_EQ(pixels_of(fit_image(grey(2, 6,
                                     {9, 1, 2, 3, 4, 9,  //
                                      9, 5, 6, 7, 8, 9}),
                                1, 2)),
            std::vector<int>({4, 6}))
      << "columns 1 to 4: means 3.5 and 5.5";
}

TEST(FitImage, KeepsChannelsApart) {
  Tensor image({1, 2, 3}, DType::u8);
  for (int i = 0; i < 6; ++i) image.data<uint8_t>()[i] = static_cast<uint8_t>(10 * i);
  EXPECT_EQ(pixels_of(fit_image(image, 1, 1)), std::vector<int>({0, 10, 20}))
      << "the left one of the two in the middle";
  EXPECT_EQ(pixels_of(fit_image(image, 2, 4)),
            std::vector<int>({0, 10, 20, 8, 18, 28, 23, 33, 43, 30, 40, 50,  //
                              0, 10, 20, 8, 18, 28, 23, 33, 43, 30, 40, 50}));
}

TEST(FitImage, LeavesWhiteWhite) {
  const Tensor image = grey(7, 11, std::vector<int>(77, 255));
  EXPECT_EQ(pixels_of(fit_image(image, 3, 5)), std::vector<int>(15, 255));
  EXPECT_EQ(pixels_of(fit_image(image, 23, 17)), std::vector<int>(23 * 17, 255));
}

TEST(FitImage, ReturnsWhatFitsAsItIs) {
  const Tensor image = grey(2, 2, {1, 2, 3, 4});
  EXPECT_EQ(fit_image(image, 2, 2).raw(), image.raw());
}

TEST(FitImage, RefusesOtherTensorsAndSizes) {
  EXPECT_EQ(error_of([] {
              fit_image(Tensor({2, 2}, DType::u8), 1, 1);
            }),
            "fit_image: the picture is (2, 2) u8, expected (H, W, C) u8");
  EXPECT_EQ(error_of([] { fit_image(grey(1, 1, {0}), 0, 3); }),
            "fit_image: to 0 x 3, expected at least 1 x 1");
}

}  // namespace
}  // namespace wisp
