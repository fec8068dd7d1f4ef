#include "apps/survey/picture_files.h"

#include <gtest/gtest.h>

#include <set>

#include "data/decoding/image_file.h"
#include "data/images/synthetic.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

Prepared prepared_with(const Overrides& overrides) {
  Prepared prepared(tiny_config(overrides));
  prepared.load();
  return prepared;
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

TEST(PictureFiles, AreTheSamplesOfTheFirstStep) {
  const TempDir dir;
  const Prepared prepared = prepared_with({"data.augment=false", "workers=2"});
  EXPECT_EQ(write_pictures(prepared, 5, dir / "a/b"), 5);
  const std::set<std::string> names = files_in(dir / "a/b");
  ASSERT_EQ(names.size(), 5u);
  const ImageSet drawn = draw_synthetic({.train_count = 128, .test_count = 40}, Split::train);
  const Deal one{.batch = 32, .seed = 1};
  const std::vector<int64_t> rows = prepared.examples(Split::train)->epoch(0, one)[0].rows;
  for (size_t i = 0; i < 5; ++i) {
    const std::string name = concat("class", rows[i] % 10, "_", rows[i], ".png");
    ASSERT_TRUE(names.contains(name)) << name;
    const Tensor picture = read_image(dir / ("a/b/" + name), 3);
    const Tensor image = drawn.images.rows(rows[i], rows[i] + 1);
    EXPECT_EQ(std::memcmp(picture.raw(), image.raw(), static_cast<size_t>(image.bytes())), 0)
        << name;
  }
}

TEST(PictureFiles, AreNoMoreThanThereAre) {
  const TempDir dir;
  const Prepared prepared = prepared_with({"train.batch=50"});
  EXPECT_EQ(write_pictures(prepared, 1000, dir.path()), 100) << "two steps";
}

TEST(PictureFiles, FailWhereTheyCannotBeWritten) {
  const Prepared prepared = prepared_with({});
  const std::string why = error_of([&] { write_pictures(prepared, 1, "/dev/null/a"); });
  EXPECT_EQ(why, "cannot make the folder /dev/null/a: Not a directory");
}

}  // namespace
}  // namespace wisp
