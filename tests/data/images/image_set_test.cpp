#include "data/images/image_set.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/random_images.h"

namespace wisp {
namespace {

TEST(DataSource, IsMadeByName) {
  Config config = Config::from_text(
      "[data]\nname = \"synthetic\"\ntrain_count = 30\ntest_count = 20\nvalidation = 4\n", "test");
  const auto source = make_data_source(config);
  const Splits splits = source->open(DType::f32);
  EXPECT_EQ(splits.train->count(), 26);
  EXPECT_EQ(splits.validation->count(), 4);
  EXPECT_EQ(splits.of(Split::test)->count(), 20);
  EXPECT_EQ(source->held_out(), 4);
  EXPECT_TRUE(source->has_validation());
  EXPECT_EQ(source->facts().image("test"), Shape({32, 32, 3}));
  EXPECT_EQ(source->facts().classes, 10);
  config.finish();
}

TEST(DataSource, Cifar10LooksAtDataPath) {
  Config config = Config::from_text("[data]\npath = \"/nowhere\"\n", "test");
  const auto source = make_data_source(config);
  EXPECT_EQ(source->facts().names.at(3), "cat") << "known without the data";
  EXPECT_NE(error_of([&] { source->open(DType::f32); }).find("'/nowhere' (data.path)"),
            std::string::npos);
}

TEST(DataSource, UnknownNameListsTheKnownOnes) {
  Config config = Config::from_text("[data]\nname = \"cifar11\"\n", "test");
  EXPECT_EQ(
      error_of([&] { make_data_source(config); }),
      "unknown data set (data.name) 'cifar11'; known: an4, cifar10, librispeech, photos, ptb, "
      "speech, synthetic, text, wikitext2");
}

TEST(ImageSet, PartsThatDoNotFitAreRefused) {
  const ImageSet good = random_images({6, 4, 4, 3});
  good.check();

  ImageSet set = good;
  set.images = Tensor({6, 4, 4, 3}, DType::f32);
  EXPECT_NE(error_of([&] { set.check(); }).find("expected (N, H, W, C) u8"), std::string::npos);
  set = good;
  set.labels = Tensor({5}, DType::i32);
  EXPECT_NE(error_of([&] { set.check(); }).find("expected (6) i32"), std::string::npos);
  set = random_images({6, 4, 4, 3});
  set.labels.data<int32_t>()[4] = 10;
  EXPECT_EQ(error_of([&] { set.check(); }), "random images: label 10 of sample 4, expected 0 to 9");
  set = good;
  set.classes = 0;
  EXPECT_NE(error_of([&] { set.check(); }).find("0 classes"), std::string::npos);
}

}  // namespace
}  // namespace wisp
