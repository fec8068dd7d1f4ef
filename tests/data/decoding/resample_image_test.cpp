#include "data/decoding/resample_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/base/hash.h"
#include "tests/support/drawn_pictures.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

Region whole(const Tensor& image) { return {0, 0, image.shape()[0], image.shape()[1]}; }

Tensor cut(const Tensor& image, const Region& region) {
  return drawn_picture(region.height, region.width, [&](int64_t y, int64_t x, int64_t c) {
    return image.data<uint8_t>()[((region.top + y) * image.shape()[1] + region.left + x) * 3 + c];
  });
}

// Written by scripts/check_images.py --table with Pillow 11.3.0: the picture's height and width,
// the view, the hashes of the noise and the checks in both filters, the middle pixel of the noise.
const struct {
  int64_t height, width;
  View view;
  uint64_t noise_bilinear, noise_bicubic, checks_bilinear, checks_bicubic;
  int middle[3];
} kPillow[] = {
    {375,
     500,
     {{0, 0, 375, 500}, 256, 341, {16, 58, 224, 224}},
     0xfce209552a98beb0,
     0xdf0d69131f2f8707,
     0x39473631028fbb50,
     0xf4b12e53f825c8a8,
     {116, 68, 166}},
    {500,
     333,
     {{0, 0, 500, 333}, 384, 256, {80, 16, 224, 224}},
     0xf50c4e7327114814,
     0x2ac5c650902a5330,
     0x958ed697b8e8954f,
     0x8fe1c338c047246f,
     {143, 196, 44}},
    {375,
     500,
     {{31, 40, 233, 301}, 224, 224, {0, 0, 224, 224}},
     0x32851aa9a29ad5ca,
     0x28c0da245ff6b27c,
     0x74e131ba5e5f3efb,
     0x1ad8b2f4dd0b0bcb,
     {53, 157, 155}},
    {37,
     53,
     {{0, 0, 37, 53}, 224, 224, {0, 0, 224, 224}},
     0x2eb2b10b46ee5554,
     0x605ebec5ca34aaff,
     0x20fd7c19276b881f,
     0x788ed1965265cf03,
     {219, 82, 169}},
    {133,
     211,
     {{5, 9, 101, 77}, 32, 32, {3, 5, 20, 25}},
     0x3d854218291b1d7a,
     0x8987de42d5841f52,
     0xece9b452e8c0558b,
     0x8fbddb76bf6f86b7,
     {132, 147, 95}},
    {60,
     7,
     {{0, 0, 60, 7}, 20, 9, {0, 0, 20, 9}},
     0x73f739b0da1acdac,
     0x289e02f0efaee344,
     0x6152125eedfe009b,
     0x9b8b3b9860183c11,
     {59, 125, 220}},
    {7,
     60,
     {{0, 0, 7, 60}, 9, 20, {0, 0, 9, 20}},
     0x974d631de4eae3d9,
     0xb9a554a6cc330d14,
     0xf872c92d56c288a1,
     0x74685fcf9be9cf9d,
     {107, 119, 117}},
    {64,
     64,
     {{0, 0, 64, 64}, 64, 64, {0, 0, 64, 64}},
     0x01247033d98a7145,
     0x01247033d98a7145,
     0xe5327a35aeaba775,
     0xe5327a35aeaba775,
     {92, 178, 7}},
    {1,
     1,
     {{0, 0, 1, 1}, 5, 7, {0, 0, 5, 7}},
     0xd75ba435c68a286a,
     0xd75ba435c68a286a,
     0x4f82af2428b6b973,
     0x4f82af2428b6b973,
     {0, 85, 171}},
    {400,
     400,
     {{0, 0, 400, 400}, 1, 1, {0, 0, 1, 1}},
     0xb8311da5e0dd40bd,
     0xb8311da5e0dd40bd,
     0x65ac46c8d2824eb4,
     0x65ac46c8d2824eb4,
     {127, 128, 128}},
};

TEST(ResampleImage, HasPillowsBits) {
  for (const auto& row : kPillow) {
    const Tensor noise = noise_picture(row.height, row.width);
    const Tensor checks = checks_picture(row.height, row.width);
    const auto hash = [&](const Tensor& image, Filter filter) {
      return hash_text(bytes_of(resample_image(image, whole(image), row.view, filter)));
    };
    const std::string where = concat(row.height, " x ", row.width);
    EXPECT_EQ(hash(noise, Filter::bilinear), row.noise_bilinear) << where;
    EXPECT_EQ(hash(noise, Filter::bicubic), row.noise_bicubic) << where;
    EXPECT_EQ(hash(checks, Filter::bilinear), row.checks_bilinear) << where;
    EXPECT_EQ(hash(checks, Filter::bicubic), row.checks_bicubic) << where;

    const Tensor scaled = resample_image(noise, whole(noise), row.view, Filter::bicubic);
    const Region& window = row.view.window;
    const uint8_t* middle =
        scaled.data<uint8_t>() + (window.height / 2 * window.width + window.width / 2) * 3;
    for (int c = 0; c < 3; ++c) EXPECT_EQ(middle[c], row.middle[c]) << where << " channel " << c;
  }
}

TEST(ResampleImage, ReadsItsFootprintAlone) {
  for (const auto& row : kPillow) {
    const Tensor image = noise_picture(row.height, row.width);
    for (const Filter filter : {Filter::bilinear, Filter::bicubic}) {
      const Region at = footprint(row.view, filter);
      ASSERT_TRUE(row.view.source.holds(at));
      EXPECT_EQ(bytes_of(resample_image(cut(image, at), at, row.view, filter)),
                bytes_of(resample_image(image, whole(image), row.view, filter)));
    }
  }
}

TEST(ResampleImage, AWindowIsPartOfTheWholeScaledSource) {
  const Tensor image = noise_picture(61, 83);
  const View all{{3, 5, 50, 70}, 33, 91, {0, 0, 33, 91}};
  for (const Filter filter : {Filter::bilinear, Filter::bicubic}) {
    const Tensor scaled = resample_image(image, whole(image), all, filter);
    for (const Region& window : {Region{0, 0, 1, 1}, Region{32, 90, 1, 1}, Region{7, 20, 11, 40}}) {
      View view = all;
      view.window = window;
      EXPECT_EQ(bytes_of(resample_image(image, whole(image), view, filter)),
                bytes_of(cut(scaled, window)));
    }
  }
}

// Half the size, bilinear: the triangle covers four pixels with weights 1, 3, 3, 1, and three at
// the ends.
TEST(ResampleImage, HalvesARowAsByHand) {
  const Tensor row = drawn_picture(1, 6, [](int64_t, int64_t x, int64_t c) {
    const int values[] = {10, 20, 40, 80, 160, 0};
    return c == 0 ? values[x] : 0;
  });
  const Tensor half =
      resample_image(row, whole(row), {whole(row), 1, 3, {0, 0, 1, 3}}, Filter::bilinear);
  EXPECT_EQ(half.data<uint8_t>()[0], 19) << "(3 * 10 + 3 * 20 + 40) / 7 = 18.57";
  EXPECT_EQ(half.data<uint8_t>()[3], 68) << "(20 + 3 * 40 + 3 * 80 + 160) / 8 = 67.5";
  EXPECT_EQ(half.data<uint8_t>()[6], 80) << "(80 + 3 * 160 + 3 * 0) / 7 = 80";
}

TEST(ResampleImage, PixelsOutsideOfTheSourceHaveNoInfluence) {
  const Tensor image = noise_picture(40, 40);
  const View view{{10, 12, 20, 16}, 7, 50, {0, 0, 7, 50}};
  const Tensor alone = cut(image, view.source);
  EXPECT_EQ(bytes_of(resample_image(image, whole(image), view, Filter::bicubic)),
            bytes_of(resample_image(alone, whole(alone), {whole(alone), 7, 50, {0, 0, 7, 50}},
                                    Filter::bicubic)));
}

TEST(ResampleImage, RefusesOtherTensorsAndViews) {
  const View view{{0, 0, 4, 4}, 2, 2, {0, 0, 2, 2}};
  EXPECT_EQ(error_of([&] {
              resample_image(Tensor({4, 4, 1}, DType::u8), {0, 0, 4, 4}, view, Filter::bilinear);
            }),
            "resample_image: the picture is (4, 4, 1) u8, expected (4, 4, 3) u8");
  EXPECT_EQ(error_of([&] {
              resample_image(noise_picture(3, 4), {0, 0, 3, 4}, view, Filter::bilinear);
            }),
            "resample_image: the view reads pixels outside of those given");
  for (const View& none :
       {View{}, View{{0, 0, 4, 4}, 2, 2, {0, 0, 3, 2}}, View{{0, 0, 0, 4}, 2, 2, {0, 0, 2, 2}}})
    EXPECT_EQ(error_of([&] { footprint(none, Filter::bilinear); }),
              "footprint: the view has no pixels, or its window is outside of it");
}

}  // namespace
}  // namespace wisp
