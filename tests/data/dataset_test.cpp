#include "data/dataset.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/random_images.h"

namespace wisp {
namespace {

TEST(Dataset, IsMadeByName) {
  Config config = Config::from_text(
      "[data]\nname = \"synthetic\"\ntrain_count = 30\ntest_count = 20\n", "test");
  const auto source = make_data_source(config);
  EXPECT_EQ(source->load(Split::train).count(), 30);
  EXPECT_EQ(source->load(Split::test).count(), 20);
  EXPECT_EQ(source->load(Split::test).images.shape(), Shape({20, 32, 32, 3}));
  EXPECT_EQ(source->sample(), Shape({32, 32, 3}));
  config.finish();
}

TEST(Dataset, Cifar10LooksAtDataPath) {
  Config config = Config::from_text("[data]\npath = \"/nowhere\"\n", "test");
  EXPECT_NE(error_of([&] {
              make_data_source(config)->load(Split::train);
            }).find("'/nowhere' (data.path)"),
            std::string::npos);
}

TEST(Dataset, UnknownNameListsTheKnownOnes) {
  Config config = Config::from_text("[data]\nname = \"cifar11\"\n", "test");
  EXPECT_EQ(error_of([&] { make_data_source(config); }),
            "unknown data set (data.name) 'cifar11'; known: cifar10, synthetic");
}

TEST(Dataset, PartsThatDoNotFitAreRefused) {
  const Dataset good = random_images({6, 4, 4, 3});
  good.check();

  Dataset set = good;
  set.images = Tensor({6, 4, 4, 3}, DType::f32);
  EXPECT_NE(error_of([&] { set.check(); }).find("expected (N, H, W, C) u8"), std::string::npos);
  set = good;
  set.labels = Tensor({5}, DType::i32);
  EXPECT_NE(error_of([&] { set.check(); }).find("expected (6) i32"), std::string::npos);
  set = good;
  set.mean.pop_back();
  EXPECT_NE(error_of([&] { set.check(); }).find("2 means and 3 deviations for 3 channels"),
            std::string::npos);
  set = good;
  set.deviation[1] = 0;
  EXPECT_NE(error_of([&] { set.check(); }).find("deviation is 0"), std::string::npos);
  set = good;
  set.classes = 0;
  EXPECT_NE(error_of([&] { set.check(); }).find("0 classes"), std::string::npos);
}

}  // namespace
}  // namespace wisp
