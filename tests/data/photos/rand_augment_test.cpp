#include "data/photos/rand_augment.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/base/hash.h"
#include "tests/support/drawn_pictures.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

/// Noise of little contrast, from 100 to 227.
Tensor pale() {
  const Tensor noise = noise_picture(29, 41);
  return drawn_picture(29, 41, [&](int64_t y, int64_t x, int64_t c) {
    return noise.data<uint8_t>()[(y * 41 + x) * 3 + c] / 2 + 100;
  });
}

// Written by scripts/check_images.py --table with torchvision 0.29.2 and Pillow 11.3.0: the change,
// hashes of pale() at magnitude 9, at -9 if the change has a sign, and at 24.
const struct {
  int64_t change;
  uint64_t hashes[3];
} kTorchvision[] = {
    {0, {0x84d7f8c3415061ea, 0x84d7f8c3415061ea, 0x84d7f8c3415061ea}},   // Identity
    {1, {0x21a5c02ac68f0bc6, 0xc78f772ba3e881db, 0x42fa39b186164aaa}},   // ShearX
    {2, {0x38a8a18e2304280b, 0x883775f6a9a30f65, 0xeb8f0c06f9f9a351}},   // ShearY
    {3, {0xdcd300ee86ddfdc2, 0x5e05598d357fd387, 0x0f0783b11e64da9f}},   // TranslateX
    {4, {0x9c2f411c77c18162, 0x7b4023ebfa161c12, 0x1d97e0f1bf419eff}},   // TranslateY
    {5, {0x8bc22d4d6a8eca51, 0xa9c1d798d6317c7c, 0x0ad38395609543aa}},   // Rotate
    {6, {0xc0a9f667d521635e, 0x8393731d46edd3da, 0x85c635f511d8793e}},   // Brightness
    {7, {0x99aa20498c2a1b55, 0x458541d4bde8aae0, 0xc661d38ee979c8d6}},   // Color
    {8, {0x9b903817c02c552f, 0x92148a8a1b6ad8c9, 0xee0c38a602c3a38a}},   // Contrast
    {9, {0xaeab7625be5a4d3d, 0xbb3d44f2025bf9a1, 0x6ea526782fd2e032}},   // Sharpness
    {10, {0xd04ff2b56e31cc8b, 0xd04ff2b56e31cc8b, 0x9ea2dffb3adcf9c7}},  // Posterize
    {11, {0x9a45f75a0ee41722, 0x9a45f75a0ee41722, 0xb3ef41aa9dfdb2b1}},  // Solarize
    {12, {0x0a72dfe2e39c2fb4, 0x0a72dfe2e39c2fb4, 0x0a72dfe2e39c2fb4}},  // AutoContrast
    {13, {0x0e250b1e1c9e1e23, 0x0e250b1e1c9e1e23, 0x0e250b1e1c9e1e23}},  // Equalize
};

TEST(RandAugment, ChangesHavePillowsBits) {
  for (const auto& row : kTorchvision) {
    const auto hash = [&](int64_t magnitude, int sign) {
      const Tensor image = pale();
      change_image(image, row.change, magnitude, sign);
      return hash_text(bytes_of(image));
    };
    EXPECT_EQ(hash(9, 1), row.hashes[0]) << row.change;
    EXPECT_EQ(hash(9, -1), row.hashes[1]) << row.change;
    EXPECT_EQ(hash(24, 1), row.hashes[2]) << row.change;
  }
}

TEST(RandAugment, ShiftsAsByHand) {
  const Tensor image = noise_picture(4, 20);
  change_image(image, 3, 9, 1);  // 0.3 * 150 / 331 * 20 = 2.7: by 2 to the right
  const Tensor from = noise_picture(4, 20);
  EXPECT_EQ(bytes_of(image), bytes_of(drawn_picture(4, 20, [&](int64_t y, int64_t x, int64_t c) {
              return x < 2 ? 0 : from.data<uint8_t>()[(y * 20 + x - 2) * 3 + c];
            })));
}

TEST(RandAugment, LeavesAPictureOfOneValueAsItIs) {
  for (const int64_t change : {9, 12, 13}) {  // sharpness, contrast, histogram
    const auto even = [] {
      return drawn_picture(7, 5, [](int64_t, int64_t, int64_t) { return 99; });
    };
    const Tensor image = even();
    change_image(image, change, 9, 1);
    EXPECT_EQ(bytes_of(image), bytes_of(even())) << change;
  }
}

TEST(RandAugment, EveryChangeTakesAPictureOfOnePixel) {
  for (int64_t change = 0; change < 14; ++change) {
    const Tensor image = noise_picture(1, 1);
    change_image(image, change, 30, -1);
  }
}

uint64_t augmented(const RandAugment& options, const SampleKey& key) {
  const Tensor image = pale();
  rand_augment(image, options, key);
  return hash_text(bytes_of(image));
}

// Every change, and each sign of those that have one, gives another picture.
TEST(RandAugment, EveryChangeIsDrawnEquallyOften) {
  std::map<uint64_t, int> counts;
  constexpr int kCount = 1400;
  for (int64_t sample = 0; sample < kCount; ++sample)
    ++counts[augmented({.changes = 1}, {1, 0, sample})];
  std::map<uint64_t, int64_t> change_of;
  for (const auto& row : kTorchvision)
    for (const int i : {0, 1}) change_of[row.hashes[i]] = row.change;
  std::map<int64_t, int> of_change;
  for (const auto& [hash, count] : counts) {
    ASSERT_TRUE(change_of.contains(hash));
    of_change[change_of[hash]] += count;
  }
  EXPECT_EQ(of_change.size(), 14u);
  for (const auto& [change, count] : of_change)
    EXPECT_NEAR(count, 100, 39) << change << ": four deviations of 9.6";
  EXPECT_EQ(counts.size(), change_of.size()) << "both signs occur";
}

TEST(RandAugment, IsKeyedBySeedEpochAndSample) {
  const RandAugment options{.changes = 4};
  EXPECT_EQ(augmented(options, {1, 2, 3}), augmented(options, {1, 2, 3}));
  EXPECT_EQ(std::set({augmented(options, {1, 2, 3}), augmented(options, {2, 2, 3}),
                      augmented(options, {1, 3, 3}), augmented(options, {1, 2, 4})})
                .size(),
            4u);
  EXPECT_EQ(augmented({}, {1, 2, 3}), hash_text(bytes_of(pale()))) << "no changes";
}

TEST(RandAugment, RefusesOptionsAndTensorsThatAreNone) {
  EXPECT_EQ(error_of([] { check(RandAugment{.changes = -1}); }),
            "RandAugment: -1 changes, expected 0 or more");
  EXPECT_EQ(error_of([] { check(RandAugment{.magnitude = 31}); }),
            "RandAugment: the magnitude is 31, expected 0 to 30");
  EXPECT_EQ(error_of([] {
              rand_augment(Tensor({2, 2, 1}, DType::u8), {}, {});
            }),
            "RandAugment: the picture is (2, 2, 1) u8, expected (H, W, 3) u8");
  EXPECT_EQ(error_of([] { change_image(noise_picture(2, 2), 14, 9, 1); }),
            "RandAugment: change 14, expected 0 to 13");
}

}  // namespace
}  // namespace wisp
