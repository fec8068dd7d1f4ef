#include "data/decoding/image_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

// torchvision's formulas for Resize(256) and CenterCrop(224), evaluated in Python.
TEST(ImageView, EvaluationRoundsAsTorchvision) {
  const struct {
    int64_t height, width, scaled_height, scaled_width, top, left;
  } kExpected[] = {{375, 500, 256, 341, 16, 58},  // half of 117 is rounded to the even 58
                   {500, 375, 341, 256, 58, 16},  //
                   {333, 500, 256, 384, 16, 80},  //
                   {500, 333, 384, 256, 80, 16},  //
                   {338, 500, 256, 378, 16, 77},  // 378.7 is cut
                   {500, 385, 332, 256, 54, 16},  //
                   {294, 206, 365, 256, 70, 16},  // half of 141 is rounded to the even 70
                   {100, 100, 256, 256, 16, 16},  //
                   {1, 700, 256, 179200, 16, 89488}, {1066, 800, 341, 256, 58, 16}};
  for (const auto& e : kExpected) {
    const View view = evaluation_view(e.height, e.width, 256, 224);
    EXPECT_EQ(
        view,
        (View{
            {0, 0, e.height, e.width}, e.scaled_height, e.scaled_width, {e.top, e.left, 224, 224}}))
        << e.height << " x " << e.width;
  }
}

TEST(ImageView, EvaluationRefusesACropLargerThanTheSide) {
  EXPECT_EQ(
      error_of([] { evaluation_view(300, 400, 224, 225); }),
      "view: the centre of 225 pixels of a shorter side of 224, expected at least 1 pixel and "
      "at most the side");
  EXPECT_EQ(error_of([] { evaluation_view(0, 400, 256, 224); }),
            "view: the picture has 0 x 400 pixels, expected at least 1 x 1");
}

TEST(ImageView, ShrunkViewsAreTheNearest) {
  const View view{{10, 21, 30, 41}, 5, 6, {1, 2, 3, 4}};
  EXPECT_EQ(shrunk(view, 100, 100, 1), view);
  EXPECT_EQ(shrunk(view, 100, 100, 2), (View{{5, 11, 15, 20}, 5, 6, {1, 2, 3, 4}}))
      << "10.5 becomes 11, and 62 / 2 is 31";
  EXPECT_EQ(shrunk(view, 100, 100, 8).source, (Region{1, 3, 4, 5}));
  // the picture's own ends: 41 / 2 is rounded up, as the smaller picture is
  EXPECT_EQ(shrunk({{0, 0, 33, 41}, 5, 6, {0, 0, 5, 6}}, 33, 41, 2).source, (Region{0, 0, 17, 21}));
  EXPECT_EQ(
      error_of([&] {
        shrunk({{0, 0, 7, 9}, 1, 1, {0, 0, 1, 1}}, 50, 50, 8);
      }),
      "view: 7 x 9 pixels of a picture 8 times smaller, expected at least as many on each side");
}

TEST(ImageView, RandomViewsAreWithinTheLimits) {
  double area = 0, log_aspect = 0, least = 1, most = 0;
  constexpr int kCount = 4000;
  for (int64_t sample = 0; sample < kCount; ++sample) {
    const View view = random_view(400, 400, 224, {}, {1, 0, sample});
    EXPECT_EQ(view.height, 224);
    EXPECT_EQ(view.width, 224);
    EXPECT_EQ(view.window, (Region{0, 0, 224, 224}));
    ASSERT_TRUE(Region({0, 0, 400, 400}).holds(view.source));
    const auto h = static_cast<double>(view.source.height);
    const auto w = static_cast<double>(view.source.width);
    const double share = h * w / 160000;
    area += share;
    log_aspect += std::log(w / h);
    least = std::min(least, share);
    most = std::max(most, share);
    EXPECT_LT(std::abs(std::log(w / h)), std::log(4. / 3) + 0.01) << "sides are rounded";
  }
  // torchvision's algorithm in Python, 100,000 times: 0.478; four deviations of 0.24 / sqrt(4000)
  EXPECT_NEAR(area / kCount, 0.478, 0.015);
  EXPECT_NEAR(log_aspect / kCount, 0, 0.01) << "three deviations of 0.17 / sqrt(4000)";
  EXPECT_NEAR(least, 0.08, 0.005);
  EXPECT_GT(most, 0.95);
}

TEST(ImageView, RandomViewsReachEveryPlace) {
  std::set<int64_t> tops, lefts;
  const RandomCrop limits{
      .least_area = 0.25, .most_area = 0.25, .least_aspect = 1, .most_aspect = 1};
  for (int64_t sample = 0; sample < 500; ++sample) {
    const View view = random_view(16, 16, 8, limits, {1, 0, sample});
    EXPECT_EQ(view.source.height, 8);
    EXPECT_EQ(view.source.width, 8);
    tops.insert(view.source.top);
    lefts.insert(view.source.left);
  }
  EXPECT_EQ(tops.size(), 9u);
  EXPECT_EQ(lefts.size(), 9u);
}

TEST(ImageView, RandomViewsAreKeyedBySeedEpochAndSample) {
  const auto view = [](uint64_t seed, int64_t epoch, int64_t sample) {
    return random_view(375, 500, 224, {}, {seed, epoch, sample});
  };
  EXPECT_EQ(view(1, 2, 3), view(1, 2, 3));
  EXPECT_NE(view(1, 2, 3), view(2, 2, 3));
  EXPECT_NE(view(1, 2, 3), view(1, 3, 3));
  EXPECT_NE(view(1, 2, 3), view(1, 2, 4));
}

// No crop of the whole area with aspect 3/4 to 4/3 fits: the largest centred one remains.
TEST(ImageView, ACropThatNeverFitsIsCentred) {
  const RandomCrop all{.least_area = 1};
  EXPECT_EQ(random_view(100, 1000, 224, all, {}).source, (Region{0, 433, 100, 133}));
  EXPECT_EQ(random_view(1000, 100, 224, all, {}).source, (Region{433, 0, 133, 100}));
  EXPECT_EQ(random_view(1, 1, 224, {}, {}).source, (Region{0, 0, 1, 1}));
  EXPECT_EQ(random_view(1, 9, 224, all, {}).source, (Region{0, 4, 1, 1}));
}

TEST(ImageView, RefusesLimitsThatAreNone) {
  EXPECT_EQ(error_of([] { random_view(9, 9, 4, {.least_area = 0}, {}); }).substr(0, 50),
            "view: a random crop of an area from 0 to 1 and an ");
  EXPECT_NE(error_of([] { random_view(9, 9, 4, {.most_area = 1.5}, {}); }), "no error");
  EXPECT_NE(error_of([] { random_view(9, 9, 4, {.least_aspect = 2}, {}); }), "no error");
  EXPECT_EQ(error_of([] { random_view(9, 9, 0, {}, {}); }),
            "view: a random crop scaled to 0 pixels, expected at least 1");
}

}  // namespace
}  // namespace wisp
