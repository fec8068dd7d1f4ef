// Tests of photos in a build without OpenCV: a PNG is not counted as damaged.
#include <gtest/gtest.h>

#include "data/photos/photo_examples.h"
#include "data/photos/photo_files.h"
#include "data/photos/photo_packing.h"
#include "data/photos/photo_shards.h"
#include "tests/support/error_of.h"
#include "tests/support/random_images.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

class PhotosWithoutOpenCv : public testing::Test {
 protected:
  PhotosWithoutOpenCv() {
    using namespace std::string_literals;
    // the chunks of a PNG of 30 x 20 pixels, each with its checksum; only a decoder misses the
    // pixels
    path_ = dir_.write("photos/ants/a.png",
                       "\x89PNG\r\n\x1a\n"
                       "\0\0\0\rIHDR\0\0\0\x1e\0\0\0\x14\b\2\0\0\0\025\311\032\223"
                       "\0\0\0\0IDAT\065\257\006\036"
                       "\0\0\0\0IEND\256\102\140\202"s);
    photos_ = photos_by_folder(dir_ / "photos", {"ants"}).photos;
  }
  std::string refusal() const {
    return path_ +
           ": this build has no OpenCV, which reads photos: install libopencv-imgcodecs-dev and "
           "build again";
  }

  const TempDir dir_;
  std::string path_;
  std::shared_ptr<const PhotoSet> photos_;
};

TEST_F(PhotosWithoutOpenCv, EndTheRun) {
  const PhotoExamples set("photos", photos_, {.side = 10, .size = 8}, random_normalization(),
                          DType::f32, {.training = false, .most_bad = 5});
  const Piece piece{.rows = {0}};
  Batch batch;
  set.shape(piece, batch);
  EXPECT_EQ(error_of([&] { set.fill(piece, 0, batch); }), refusal());
}

TEST_F(PhotosWithoutOpenCv, AreNotPackedUnscaled) {
  const auto pack = [&](const PackOptions& options) {
    pack_photos(*photos_, {"ants"}, dir_ / "out", options, [](int64_t) { return true; });
  };
  EXPECT_EQ(error_of([&] { pack({.side = 10}); }), refusal());
  EXPECT_FALSE(has_shards(dir_ / "out"));
  pack({});
  EXPECT_EQ(PhotoShards(dir_ / "out").count(), 1) << "bytes need no decoder";
}

}  // namespace
}  // namespace wisp
