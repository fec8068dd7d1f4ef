#include "data/photos/photo_examples.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "data/decoding/image_file.h"
#include "data/loader.h"
#include "data/photos/photo_files.h"
#include "tests/support/error_of.h"
#include "tests/support/random_images.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

constexpr PhotoOptions kSmall{.side = 10, .size = 8};

/// Twelve photos of two classes; photo 7 is cut off.
class Photos : public testing::Test {
 protected:
  Photos() {
    for (int i = 0; i < 12; ++i) {
      const std::string path = dir_ / name(i);
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      write_image(path, random_images({i + 1, 20 + i, 31 - i, 3}).image(i));
      if (i == 7) std::filesystem::resize_file(path, 50);
    }
    found_ = photos_by_folder(dir_.path(), class_folders(dir_.path()));
  }
  /// Photos 0 to 5 are ants, 6 to 11 bees.
  static std::string name(int photo) {
    return concat(photo < 6 ? "ants/" : "bees/", static_cast<char>('a' + photo), ".png");
  }
  PhotoExamples examples(const PhotoUse& use, const PhotoOptions& options = kSmall) const {
    return {"photos", found_.photos, options, random_normalization(), DType::f32, use};
  }
  static std::vector<float> pixels(const Batch& batch, int64_t row) {
    const auto* first = batch.inputs[0].data<float>() + row * 8 * 8 * 3;
    return {first, first + 8 * 8 * 3};
  }

  const TempDir dir_;
  FoundPhotos found_;
};

TEST_F(Photos, AreSeenFromTheCentreInEvaluation) {
  const PhotoExamples set = examples({.training = false, .most_bad = 1});
  Loader loader(set, {.batch = 4, .training = false});
  loader.start_epoch(0);
  const Batch batch = *loader.next();
  EXPECT_EQ(batch.inputs[0].shape(), Shape({4, 8, 8, 3}));
  std::string buffer;
  const Photo photo(found_.photos->bytes(2, buffer));
  std::vector<float> expected(8 * 8 * 3);
  PhotoPipeline(kSmall, random_normalization(), DType::f32)
      .evaluate(photo, reinterpret_cast<std::byte*>(expected.data()));
  EXPECT_EQ(pixels(batch, 2), expected);
  EXPECT_EQ(set.origin(2).id, "ants/c.png");
  EXPECT_EQ(set.picture(batch, 0).shape(), Shape({8, 8, 3}));
}

TEST_F(Photos, AreKeyedBySeedEpochAndNumberInTraining) {
  const PhotoExamples set = examples({.training = true, .most_bad = 1});
  std::map<int64_t, std::vector<float>> seen[2];
  for (const int workers : {1, 2}) {
    for (int rank = 0; rank < workers; ++rank) {
      Loader loader(set, {.batch = 4, .workers = workers, .rank = rank, .seed = 5}, {.threads = 3});
      loader.start_epoch(2);
      while (const auto batch = loader.next()) {
        for (int64_t row = 0; row < batch->inputs[0].shape()[0]; ++row)
          seen[workers - 1][batch->samples.data<int64_t>()[row]] = pixels(*batch, row);
      }
    }
  }
  EXPECT_EQ(seen[0].size(), 12u);
  EXPECT_EQ(seen[0], seen[1]);
  Loader loader(set, {.batch = 12, .seed = 5});
  loader.start_epoch(3);
  const Batch batch = *loader.next();
  EXPECT_NE(pixels(batch, 0), seen[0][batch.samples.data<int64_t>()[0]]) << "another epoch";
}

TEST_F(Photos, AreRepeatedWithChangesOfTheirOwn) {
  const PhotoExamples set = examples({.training = true, .most_bad = 1, .order = {.repeats = 3}});
  Loader loader(set, {.batch = 12, .seed = 5});
  loader.start_epoch(0);
  const Batch batch = *loader.next();
  const auto* keys = batch.samples.data<int64_t>();
  const auto* targets = batch.targets.data<int32_t>();
  for (int64_t row = 0; row < 4; ++row) {
    for (const int64_t other : {row + 4, row + 8}) {
      EXPECT_EQ(keys[other] % 12, keys[row]);
      EXPECT_NE(keys[other], keys[row]);
      EXPECT_EQ(targets[other], targets[row]);
      if (targets[row] >= 0) {
        EXPECT_NE(pixels(batch, other), pixels(batch, row));
      }
    }
  }
  EXPECT_FALSE(loader.next());
}

TEST_F(Photos, ThatAreDamagedKeepTheirPlace) {
  const PhotoExamples set = examples({.most_bad = 1});
  Loader loader(set, {.batch = 12, .training = false});
  for (const int64_t epoch : {0, 1}) {  // the same photo counts once
    loader.start_epoch(epoch);
    const Batch batch = *loader.next();
    const auto* targets = batch.targets.data<int32_t>();
    EXPECT_EQ(std::vector<int32_t>(targets, targets + 12),
              (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 1, -1, 1, 1, 1, 1}));
    EXPECT_EQ(pixels(batch, 7), std::vector<float>(8 * 8 * 3, 0.0f));
    ASSERT_EQ(loader.damage().size(), 1u);
    EXPECT_TRUE(loader.damage()[0].starts_with(dir_ / "bees/h.png: ")) << loader.damage()[0];
    EXPECT_EQ(batch.ignored, 1);
  }
  std::filesystem::remove(dir_ / "ants/a.png");
  std::filesystem::resize_file(dir_ / "ants/b.png", 0);
  loader.start_epoch(2);
  const std::string error = error_of([&] { loader.next(); });
  EXPECT_TRUE(error.starts_with("photos: ")) << error;
  EXPECT_NE(
      error.find(" photos are damaged, data.max_bad allows 1; the last one: " + (dir_ / "ants/")),
      error.npos)
      << error;
}

TEST_F(Photos, AreTheSameElsewhere) {
  const PhotoExamples set = examples({});
  const TempDir elsewhere;
  std::filesystem::copy(dir_.path(), elsewhere / "copy", std::filesystem::copy_options::recursive);
  const FoundPhotos copy = photos_by_folder(elsewhere / "copy", class_folders(elsewhere / "copy"));
  const PhotoExamples other("copy", copy.photos, kSmall, random_normalization(), DType::f32, {});
  EXPECT_EQ(set.digest(), other.digest());
  std::filesystem::rename(elsewhere / "copy/ants/a.png", elsewhere / "copy/ants/aa.png");
  const PhotoExamples renamed(
      "copy", photos_by_folder(elsewhere / "copy", class_folders(elsewhere / "copy")).photos,
      kSmall, random_normalization(), DType::f32, {});
  EXPECT_NE(set.digest(), renamed.digest());
}

}  // namespace
}  // namespace wisp
