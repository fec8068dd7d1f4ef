#include "data/photos/photo_pipeline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "data/decoding/image_codec.h"
#include "tests/support/drawn_pictures.h"
#include "tests/support/error_of.h"
#include "tests/support/jpeg_files.h"

namespace wisp {
namespace {

const Normalization kNone{{0, 0, 0}, {1, 1, 1}};  // leaves the pixels
const PhotoOptions kTiny{.side = 16, .size = 12};

std::vector<float> trained(const PhotoPipeline& pipeline, const std::string& bytes,
                           const SampleKey& key) {
  std::vector<float> out(12 * 12 * 3);
  EXPECT_EQ(pipeline.train(Photo(bytes), key, reinterpret_cast<std::byte*>(out.data())), "");
  return out;
}

std::vector<float> evaluated(const PhotoPipeline& pipeline, const std::string& bytes) {
  std::vector<float> out(12 * 12 * 3);
  EXPECT_EQ(pipeline.evaluate(Photo(bytes), reinterpret_cast<std::byte*>(out.data())), "");
  return out;
}

std::vector<float> floats_of(const Tensor& image) {
  return {image.data<uint8_t>(), image.data<uint8_t>() + image.numel()};
}

TEST(PhotoPipeline, EvaluationIsTheScaledCentre) {
  const Tensor image = noise_picture(29, 41);
  const View view = evaluation_view(29, 41, 16, 12);
  const Tensor expected = resample_image(image, {0, 0, 29, 41}, view, Filter::bilinear);
  EXPECT_EQ(evaluated(PhotoPipeline(kTiny, kNone, DType::f32), encode_png(image)),
            floats_of(expected));
}

TEST(PhotoPipeline, TrainingIsTheRandomCropPerhapsMirrored) {
  const Tensor image = noise_picture(29, 41);
  const std::string png = encode_png(image);
  const PhotoPipeline pipeline(kTiny, kNone, DType::f32);
  int mirrored = 0;
  constexpr int kCount = 200;
  for (int64_t sample = 0; sample < kCount; ++sample) {
    const SampleKey key{1, 2, sample};
    const View view = random_view(29, 41, 12, {}, key);
    const Tensor crop = resample_image(image, {0, 0, 29, 41}, view, Filter::bilinear);
    const Tensor mirror = drawn_picture(12, 12, [&](int64_t y, int64_t x, int64_t c) {
      return crop.data<uint8_t>()[(y * 12 + 11 - x) * 3 + c];
    });
    const std::vector<float> found = trained(pipeline, png, key);
    if (found == floats_of(mirror)) {
      ++mirrored;
    } else {
      ASSERT_EQ(found, floats_of(crop));
    }
  }
  EXPECT_NEAR(mirrored, kCount / 2, 28) << "four deviations of 7";
}

TEST(PhotoPipeline, NormalisesAfterColoursAndLight) {
  const Tensor image = noise_picture(29, 41);
  const std::string png = encode_png(image);
  PhotoOptions options = kTiny;
  options.flip = false;
  options.changes.changes = 2;
  options.jitter = {0.4, 0.4, 0.4};
  options.lighting = 0.1;
  const Normalization normalization{{100, 110, 120}, {50, 60, 70}};
  const SampleKey key{1, 2, 3};
  const std::vector<float> found =
      trained(PhotoPipeline(options, normalization, DType::f32), png, key);

  const View view = random_view(29, 41, 12, {}, key);
  const Tensor crop = resample_image(image, {0, 0, 29, 41}, view, Filter::bilinear);
  rand_augment(crop, options.changes, key);
  jitter_colours(crop, options.jitter, key);
  const auto light = lighting_noise(0.1, key);
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t c = i % 3;
    EXPECT_NEAR(
        found[i],
        (crop.data<uint8_t>()[i] + light[c] - normalization.mean[c]) / normalization.deviation[c],
        1e-5)  // f32 of numbers up to 5
        << i;
  }
}

TEST(PhotoPipeline, ShrinksLargePhotosFirst) {
  const auto smooth = [](int64_t height, int64_t width) {
    return jpeg_of(drawn_picture(height, width, [&](int64_t y, int64_t x, int64_t c) {
      return 20 + 200 * x / width * (c != 1) + 30 * y / height;
    }));
  };
  PhotoOptions options = kTiny;
  const PhotoPipeline exact(options, kNone, DType::f32);
  options.shrink_first = true;
  const PhotoPipeline fast(options, kNone, DType::f32);
  const std::string large = smooth(150, 170), small = smooth(29, 40);
  EXPECT_EQ(evaluated(fast, small), evaluated(exact, small)) << "less than twice the size";
  const std::vector<float> found = evaluated(fast, large), expected = evaluated(exact, large);
  EXPECT_NE(found, expected);
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 8) << i << ": half a pixel of 16 in 200 levels, and JPEG's";
  EXPECT_EQ(evaluated(fast, encode_png(noise_picture(150, 170))),
            evaluated(exact, encode_png(noise_picture(150, 170))));
}

TEST(PhotoPipeline, ThreadsChangeNoBit) {
  const std::string png = encode_png(noise_picture(29, 41));
  PhotoOptions options = kTiny;
  options.changes.changes = 2;
  options.jitter = {0.4, 0.4, 0.4};
  options.lighting = 0.1;
  const PhotoPipeline pipeline(options, kNone, DType::f32);
  constexpr int64_t kCount = 40;
  std::vector<std::vector<float>> alone, together(kCount);
  for (int64_t i = 0; i < kCount; ++i) alone.push_back(trained(pipeline, png, {1, 0, i}));
  std::vector<std::thread> threads;
  for (int64_t first = 0; first < 4; ++first)
    threads.emplace_back([&, first] {
      for (int64_t i = kCount - 1 - first; i >= 0; i -= 4)
        together[static_cast<size_t>(i)] = trained(pipeline, png, {1, 0, i});
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together, alone);
}

TEST(PhotoPipeline, RefusesOptionsOutOfRange) {
  const auto refusal = [](const PhotoOptions& options) {
    return error_of([&] { PhotoPipeline(options, kNone, DType::f32); });
  };
  EXPECT_EQ(refusal({.side = 100, .size = 200}).substr(0, 5), "view:");
  EXPECT_EQ(refusal({.crop = {.least_area = -1}}).substr(0, 5), "view:");
  EXPECT_EQ(refusal({.changes = {.magnitude = 31}}),
            "RandAugment: the magnitude is 31, expected 0 to 30");
  EXPECT_EQ(refusal({.jitter = {.brightness = -1}}),
            "colour jitter: a strength is -1, expected 0 or more");
  EXPECT_EQ(refusal({.lighting = -1}), "lighting noise: the strength is -1, expected 0 or more");
  EXPECT_EQ(error_of([] {
              PhotoPipeline({}, {{0}, {1}}, DType::f32);
            }),
            "photos: the normalisation has 1 channels, expected 3");
}

}  // namespace
}  // namespace wisp
