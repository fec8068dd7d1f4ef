#include "data/images/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

constexpr int64_t kPixels = 32 * 32 * 3;
constexpr size_t kClasses = 10;

bool same_image(const ImageSet& a, int64_t i, const ImageSet& b, int64_t j) {
  return std::memcmp(a.images.data<uint8_t>() + i * kPixels, b.images.data<uint8_t>() + j * kPixels,
                     kPixels) == 0;
}

// Softmax regression on raw pixels by plain gradient descent, one sample at a time.
class LinearModel {
 public:
  void train(const ImageSet& set, int epochs, float rate) {
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (int64_t i = 0; i < set.count(); ++i) {
        std::array<float, kClasses> slope = probabilities(set, i);
        slope[static_cast<size_t>(set.labels.data<int32_t>()[i])] -= 1;
        for (size_t p = 0; p < kPixels; ++p) {
          for (size_t c = 0; c < kClasses; ++c)
            weight_[p * kClasses + c] -= rate * slope[c] * pixel_[p];
        }
      }
    }
  }

  double accuracy(const ImageSet& set) {
    int64_t correct = 0;
    for (int64_t i = 0; i < set.count(); ++i) {
      const auto p = probabilities(set, i);
      correct += std::max_element(p.begin(), p.end()) - p.begin() == set.labels.data<int32_t>()[i];
    }
    return static_cast<double>(correct) / static_cast<double>(set.count());
  }

 private:
  std::array<float, kClasses> probabilities(const ImageSet& set, int64_t i) {
    std::array<float, kClasses> value{};
    for (size_t p = 0; p < kPixels; ++p) {
      const uint8_t raw = set.images.data<uint8_t>()[i * kPixels + static_cast<int64_t>(p)];
      pixel_[p] = (static_cast<float>(raw) - 127.5f) / 75.0f;
      for (size_t c = 0; c < kClasses; ++c) value[c] += weight_[p * kClasses + c] * pixel_[p];
    }
    const float largest = *std::max_element(value.begin(), value.end());
    float sum = 0;
    for (float& v : value) sum += v = std::exp(v - largest);
    for (float& v : value) v /= sum;
    return value;
  }

  std::vector<float> weight_ = std::vector<float>(kPixels * kClasses);
  std::vector<float> pixel_ = std::vector<float>(kPixels);
};

TEST(Synthetic, ImageDependsOnSeedSplitAndNumberAlone) {
  const ImageSet set = draw_synthetic({.train_count = 40, .seed = 3}, Split::train);
  const ImageSet longer = draw_synthetic({.train_count = 60, .seed = 3}, Split::train);
  const ImageSet test = draw_synthetic({.test_count = 40, .seed = 3}, Split::test);
  const ImageSet other = draw_synthetic({.train_count = 40, .seed = 4}, Split::train);
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_TRUE(same_image(set, i, longer, i)) << i;
    EXPECT_FALSE(same_image(set, i, test, i)) << i;
    EXPECT_FALSE(same_image(set, i, other, i)) << i;
  }
}

TEST(Synthetic, ClassesAreEquallyOften) {
  const ImageSet set = draw_synthetic({.train_count = 50}, Split::train);
  EXPECT_EQ(set.images.shape(), (Shape{50, 32, 32, 3}));
  for (int32_t i = 0; i < 50; ++i) EXPECT_EQ(set.labels.data<int32_t>()[i], i % 10);
}

TEST(Synthetic, LinearModelStaysNearChance) {
  const SyntheticOptions options{.train_count = 1500, .test_count = 1000};
  LinearModel model;
  model.train(draw_synthetic(options, Split::train), 3, 1e-3f);
  EXPECT_LT(model.accuracy(draw_synthetic(options, Split::test)), 0.2);  // chance: 0.1 ± 0.01
}

// A control: the same model learns such images once a black row tells their class.
TEST(Synthetic, LinearModelLearnsABlackRow) {
  const auto with_row = [](Split split) {
    ImageSet set = draw_synthetic({.train_count = 1000, .test_count = 500}, split);
    for (int64_t i = 0; i < set.count(); ++i) {
      const int64_t row = 3 * set.labels.data<int32_t>()[i];
      std::fill_n(set.images.data<uint8_t>() + i * kPixels + row * 32 * 3, 32 * 3, uint8_t{0});
    }
    return set;
  };
  LinearModel model;
  model.train(with_row(Split::train), 3, 1e-3f);
  EXPECT_GT(model.accuracy(with_row(Split::test)), 0.9);
}

TEST(Synthetic, LargerImagesShowTheSameScenes) {
  const ImageSet small = draw_synthetic({.train_count = 20}, Split::train);
  const ImageSet large = draw_synthetic({.train_count = 20, .side = 64}, Split::train);
  ASSERT_EQ(large.images.shape(), (Shape{20, 64, 64, 3}));
  // The mean over an image is that of its scene. Pixel noise of up to 60 averages out. Pixels on
  // edges cover other parts of the scene, but edges are thin.
  const auto mean = [](const ImageSet& set, int64_t i) {
    const int64_t bytes = set.images.bytes() / set.count();
    double sum = 0;
    for (int64_t p = 0; p < bytes; ++p) sum += set.images.data<uint8_t>()[i * bytes + p];
    return sum / static_cast<double>(bytes);
  };
  for (int64_t i = 0; i < 20; ++i) EXPECT_NEAR(mean(large, i), mean(small, i), 2.0) << i;
}

TEST(Synthetic, NoImagesIsAnError) {
  EXPECT_EQ(error_of([] { draw_synthetic({.test_count = 0}, Split::test); }),
            "synthetic: 0 test images, expected at least 1");
}

}  // namespace
}  // namespace wisp
