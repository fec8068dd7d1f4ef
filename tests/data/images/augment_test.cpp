#include "data/images/augment.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "tests/support/error_of.h"
#include "tests/support/random_images.h"

namespace wisp {
namespace {

// The recipe step by step: normalise, pad with zeros, crop, flip.
template <class T>
std::vector<T> model(const ImageSet& set, const Normalization& normalization, int64_t sample,
                     const Window& window, int64_t pad) {
  const int64_t height = set.images.shape()[1];
  const int64_t width = set.images.shape()[2];
  const int64_t channels = set.images.shape()[3];
  const int64_t padded_width = width + 2 * pad;
  std::vector<T> padded(static_cast<size_t>((height + 2 * pad) * padded_width * channels));
  const auto place = [&](int64_t y, int64_t x, int64_t c) {
    return static_cast<size_t>((y * padded_width + x) * channels + c);
  };
  const uint8_t* pixel = set.images.data<uint8_t>() + sample * height * width * channels;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c, ++pixel) {
        const auto k = static_cast<size_t>(c);
        padded[place(y + pad, x + pad, c)] = static_cast<T>(
            (double{1} * *pixel - normalization.mean[k]) / normalization.deviation[k]);
      }
    }
  }
  std::vector<T> out;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t column = window.mirror ? width - 1 - x : x;
      for (int64_t c = 0; c < channels; ++c)
        out.push_back(padded[place(y + pad + window.down, column + pad + window.right, c)]);
    }
  }
  return out;
}

template <class T>
std::vector<T> written(const ImageSet& set, const Normalization& normalization, int64_t sample,
                       const Window& window) {
  const Shape& shape = set.images.shape();
  std::vector<T> out(static_cast<size_t>(shape[1] * shape[2] * shape[3]));
  Normalizer(normalization, dtype_of<T>::value)
      .write(set.image(sample), window, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

TEST(Augment, EveryWindowEqualsPadCropFlip) {
  const ImageSet set = random_images({2, 5, 7, 3});
  const Normalization of{{125.3, 123.0, 113.9}, {63.0, 62.1, 66.7}};
  for (int64_t down = -4; down <= 4; ++down) {
    for (int64_t right = -4; right <= 4; ++right) {
      for (const bool mirror : {false, true}) {
        const Window window{down, right, mirror};
        ASSERT_EQ(written<float>(set, of, 1, window), model<float>(set, of, 1, window, 4));
        ASSERT_EQ(written<double>(set, of, 1, window), model<double>(set, of, 1, window, 4));
      }
    }
  }
}

TEST(Augment, NormalisesPerChannel) {
  const ImageSet set = random_images({1, 1, 1, 2});
  set.images.data<uint8_t>()[0] = 200;
  set.images.data<uint8_t>()[1] = 25;
  EXPECT_EQ(written<float>(set, {{100.0, 50.0}, {50.0, 25.0}}, 0, {}),
            (std::vector<float>{2.0f, -1.0f}));
}

TEST(Augment, AddsLightBeforeItNormalises) {
  const ImageSet set = random_images({1, 1, 2, 2});
  for (const int i : {0, 1, 2, 3}) set.images.data<uint8_t>()[i] = static_cast<uint8_t>(50 * i);
  const Normalizer normalizer({{100.0, 50.0}, {50.0, 25.0}}, DType::f32);
  std::vector<float> out(4);
  auto* const into = reinterpret_cast<std::byte*>(out.data());
  normalizer.write(set.image(0), {.mirror = true}, into, std::array{25.0, -12.5});
  EXPECT_EQ(out, (std::vector<float>{0.5f, 3.5f, -1.5f, -0.5f}));
  EXPECT_EQ(error_of([&] { normalizer.write(set.image(0), {}, into, std::array{1.0}); }),
            "normalizer: light for 1 channels, expected 2");
}

TEST(Augment, WritesBf16RoundedFromF32) {
  const ImageSet set = random_images({2, 5, 4, 3});
  const Window window{1, -2, true};
  const std::vector<float> exact = written<float>(set, random_normalization(), 1, window);
  const std::vector<BFloat16> rounded = written<BFloat16>(set, random_normalization(), 1, window);
  for (size_t i = 0; i < exact.size(); ++i)
    ASSERT_EQ(rounded[i].bits, BFloat16(exact[i]).bits) << i;
}

TEST(Augment, WindowIsKeyedBySeedEpochAndSample) {
  const auto key = [](const Window& w) { return w.down * 100 + w.right * 2 + w.mirror; };
  int seed_moves = 0, epoch_moves = 0, sample_moves = 0;
  for (int64_t sample = 0; sample < 100; ++sample) {
    const int64_t here = key(random_window({1, 2, sample}, 4));
    EXPECT_EQ(here, key(random_window({1, 2, sample}, 4)));
    seed_moves += here != key(random_window({2, 2, sample}, 4));
    epoch_moves += here != key(random_window({1, 3, sample}, 4));
    sample_moves += here != key(random_window({1, 2, sample + 1}, 4));
  }
  // there are 162 windows, so 0.6 of 100 pairs agree by chance, and 10 practically never
  EXPECT_GT(seed_moves, 90);
  EXPECT_GT(epoch_moves, 90);
  EXPECT_GT(sample_moves, 90);
}

TEST(Augment, WindowsAreUniform) {
  constexpr int kDraws = 18000;
  std::map<int64_t, int> down, right;
  int mirrored = 0;
  for (int64_t sample = 0; sample < kDraws; ++sample) {
    const Window window = random_window({7, 0, sample}, 4);
    ++down[window.down];
    ++right[window.right];
    mirrored += window.mirror;
  }
  ASSERT_EQ(down.size(), 9u);
  ASSERT_EQ(right.size(), 9u);
  for (int64_t shift = -4; shift <= 4; ++shift) {  // 2000 ± 42 each; 5 deviations
    EXPECT_NEAR(down[shift], 2000, 210) << shift;
    EXPECT_NEAR(right[shift], 2000, 210) << shift;
  }
  EXPECT_NEAR(mirrored, kDraws / 2, 5 * 67);  // 9000 ± 67
}

TEST(Augment, APictureIsWhatWasNormalised) {
  const Tensor pixels({16, 16, 1}, DType::u8);
  for (int value = 0; value < 256; ++value)
    pixels.data<uint8_t>()[value] = static_cast<uint8_t>(value);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const int tolerance = dtype == DType::bf16;  // half an ulp at 2.1 is 0.52 pixel steps
    const Normalizer normalizer({{113.9}, {66.7}}, dtype);
    const Tensor image({1, 16, 16, 1}, dtype);
    normalizer.write(pixels, {}, image.raw());
    const Tensor picture = normalizer.picture(image);
    EXPECT_EQ(picture.shape(), Shape({16, 16, 1}));
    for (int value = 0; value < 256; ++value)
      EXPECT_NEAR(picture.data<uint8_t>()[value], value, tolerance) << name_of(dtype);
  }
}

TEST(Augment, OnlyFloatsAreWritten) {
  EXPECT_EQ(error_of([&] { Normalizer(random_normalization(), DType::i32); }),
            "normalizer: dtype is i32, expected f32, f64 or bf16");
}

TEST(Augment, EachChannelHasAMeanAndADeviation) {
  EXPECT_NE(error_of([] {
              Normalizer({{1.0, 2.0}, {1.0, 2.0, 3.0}}, DType::f32);
            }).find("2 means and 3 deviations"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              Normalizer({{1.0}, {0.0}}, DType::f32);
            }).find("deviation is 0"),
            std::string::npos);
  std::byte out[64];
  EXPECT_EQ(error_of([&] {
              Normalizer({{1.0}, {2.0}}, DType::f32).write(Tensor({2, 2, 3}, DType::u8), {}, out);
            }),
            "normalizer: an image is (2, 2, 3), expected (H, W, 1)");
}

}  // namespace
}  // namespace wisp
