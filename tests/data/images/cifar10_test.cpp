#include "data/images/cifar10.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/error_of.h"
#include "tests/support/fake_cifar.h"

namespace wisp {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Cifar10, PlanesBecomePixels) {
  const TempDir dir;
  write_fake_cifar(dir, 2);
  const ImageSet set = read_cifar10(dir.path(), Split::test, 2);
  const uint8_t* pixel = set.images.data<uint8_t>();
  for (int64_t r = 0; r < 2; ++r) {
    for (int64_t y = 0; y < 32; ++y) {
      for (int64_t x = 0; x < 32; ++x) {
        for (int64_t c = 0; c < 3; ++c, ++pixel) ASSERT_EQ(*pixel, fake_pixel(5, r, c, y, x));
      }
    }
  }
}

TEST(Cifar10, TrainIsFiveFilesInOrderAndTestTheSixth) {
  const TempDir dir;
  write_fake_cifar(dir, 3);
  const ImageSet train = read_cifar10(dir.path(), Split::train, 3);
  EXPECT_EQ(train.images.shape(), (Shape{15, 32, 32, 3}));
  EXPECT_EQ(train.classes, 10);
  for (int i = 0; i < 15; ++i)
    EXPECT_EQ(train.labels.data<int32_t>()[i], fake_label(i / 3, i % 3)) << i;
  const ImageSet test = read_cifar10(dir.path(), Split::test, 3);
  EXPECT_EQ(test.count(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(test.labels.data<int32_t>()[i], fake_label(5, i)) << i;
}

TEST(Cifar10, IsFoundAtThePathAndInItsFolder) {
  const TempDir dir;
  EXPECT_EQ(find_cifar10(dir.path()), dir.path());
  write_fake_cifar(dir, 1, "cifar-10-batches-bin");
  EXPECT_EQ(find_cifar10(dir.path()), dir / "cifar-10-batches-bin");
  EXPECT_EQ(read_cifar10(find_cifar10(dir.path()), Split::test, 1).count(), 1);
}

TEST(Cifar10, MissingDirectoryNamesItAndTheScript) {
  const std::string error = error_of([] { find_cifar10("/nowhere/at/all"); });
  EXPECT_TRUE(contains(error, "no directory '/nowhere/at/all'")) << error;
  EXPECT_TRUE(contains(error, "scripts/get_cifar10.sh")) << error;
}

TEST(Cifar10, IsNotReadFromAPipe) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "test_batch.bin").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_cifar10(dir.path(), Split::test, 1); }),
            "cifar10: " + (dir / "test_batch.bin: it is no file, but a pipe"));
}

TEST(Cifar10, MissingFileNamesItAndTheScript) {
  const TempDir dir;
  write_fake_cifar(dir, 1);
  std::filesystem::remove(dir / "data_batch_4.bin");
  const std::string error = error_of([&] { read_cifar10(dir.path(), Split::train, 1); });
  EXPECT_TRUE(contains(error, "no file " + dir / "data_batch_4.bin")) << error;
  EXPECT_TRUE(contains(error, "scripts/get_cifar10.sh")) << error;
}

TEST(Cifar10, TruncatedFileTellsBothSizes) {
  const TempDir dir;
  write_fake_cifar(dir, 2);
  std::filesystem::resize_file(dir / "data_batch_2.bin", 2 * 3073 - 1);
  const std::string error = error_of([&] { read_cifar10(dir.path(), Split::train, 2); });
  EXPECT_TRUE(contains(error, "data_batch_2.bin has 6145 bytes, expected 6146")) << error;
}

TEST(Cifar10, OversizedFileTellsBothSizes) {
  const TempDir dir;
  write_fake_cifar(dir, 2);
  std::filesystem::resize_file(dir / "test_batch.bin", 3 * 3073);
  const std::string error = error_of([&] { read_cifar10(dir.path(), Split::test, 2); });
  EXPECT_TRUE(contains(error, "test_batch.bin has 9219 bytes, expected 6146")) << error;
}

TEST(Cifar10, OfficialFilesHaveTenThousandRecords) {
  const TempDir dir;
  write_fake_cifar(dir, 1);
  const std::string error = error_of([&] { read_cifar10(dir.path(), Split::test); });
  EXPECT_TRUE(contains(error, "has 3073 bytes, expected 30730000")) << error;
}

TEST(Cifar10, LabelAboveNineTellsFileAndRecord) {
  const TempDir dir;
  write_fake_cifar(dir, 3);
  std::string records = fake_record(2, 0) + fake_record(2, 1) + fake_record(2, 2);
  records[3073] = 10;
  dir.write("data_batch_3.bin", records);
  const std::string error = error_of([&] { read_cifar10(dir.path(), Split::train, 3); });
  EXPECT_TRUE(contains(error, "label 10 in record 1 of " + dir / "data_batch_3.bin")) << error;
}

}  // namespace
}  // namespace wisp
