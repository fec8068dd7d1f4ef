#include "data/photos/photo_shards.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

class Shards : public testing::Test {
 protected:
  /// Nine photos of three classes in shards of some 100 bytes.
  void write(const std::string& folder, const std::string& salt = "") {
    PhotoShardWriter writer(folder, {"ants", "bees", "wasps"}, 100);
    for (int i = 0; i < 9; ++i) writer.add(name(i), i % 3, content(i) + salt);
    writer.finish();
  }
  static std::string name(int i) { return "x/" + std::to_string(i * i) + ".jpg"; }
  static std::string content(int i) {
    return std::string(static_cast<size_t>(7 * i), static_cast<char>('a' + i));
  }
  std::string refusal() const {
    return error_of([&] { PhotoShards{folder_}; });
  }

  const TempDir dir_;
  const std::string folder_ = dir_ / "set";
};

TEST_F(Shards, HoldWhatWasWritten) {
  EXPECT_FALSE(has_shards(folder_));
  write(folder_);
  EXPECT_TRUE(has_shards(folder_));
  EXPECT_EQ(classes_of_shards(folder_), (std::vector<std::string>{"ants", "bees", "wasps"}));
  EXPECT_TRUE(fs::exists(dir_ / "set/photos-00001.shard")) << "several shards";
  const PhotoShards shards(folder_);
  ASSERT_EQ(shards.count(), 9);
  std::string buffer;
  for (const int i : {8, 0, 3, 8, 1, 2, 4, 5, 6, 7}) {
    EXPECT_EQ(shards.name(i), name(i));
    EXPECT_EQ(shards.label(i), i % 3);
    EXPECT_EQ(shards.bytes(i, buffer), content(i));
  }
  EXPECT_EQ(shards.folder(), folder_);
}

TEST_F(Shards, AreNotWrittenOver) {
  write(folder_);
  EXPECT_EQ(error_of([&] { write(folder_); }),
            folder_ +
                "/photos.index is there already; pack into another folder, or remove it and its "
                "shards");
}

TEST_F(Shards, LeaveNothingWhereTheirWriterWasStopped) {
  {
    PhotoShardWriter writer(folder_, {"ants"}, 10);
    for (int i = 0; i < 5; ++i) writer.add(name(i), 0, content(i));
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_EQ(error_of([&] { PhotoShardWriter(folder_, {"ants"}).finish(); }),
            folder_ + ": no photos to pack");
}

TEST_F(Shards, OfAnotherIndexAreRefused) {
  write(folder_);
  write(dir_ / "other", "!");
  const std::string shard = folder_ + "/photos-00001.shard";
  const std::string of_another = shard + ": not the shard 1 of " + folder_ +
                                 "/photos.index, expected one that `wisp pack` wrote together with "
                                 "it";
  fs::copy(dir_ / "other/photos-00001.shard", shard, fs::copy_options::overwrite_existing);
  EXPECT_EQ(refusal(), of_another);
  fs::copy(folder_ + "/photos-00000.shard", shard, fs::copy_options::overwrite_existing);
  EXPECT_EQ(refusal(), of_another);
}

TEST_F(Shards, ThatAreCutOrMissingAreRefused) {
  write(folder_);
  const std::string shard = folder_ + "/photos-00000.shard";
  const auto bytes = fs::file_size(shard);
  fs::resize_file(shard, bytes - 1);
  EXPECT_EQ(refusal(), concat(shard, ": ", bytes - 1, " bytes, the index says ", bytes));
  fs::resize_file(shard, 10);
  EXPECT_EQ(refusal(), shard + ": ends at byte 10, 54 bytes early");
  fs::remove(shard);
  EXPECT_EQ(refusal(), shard + ": cannot be opened: No such file or directory");
  fs::resize_file(folder_ + "/photos.index", 100);
  EXPECT_NE(refusal().find("photos.index"), std::string::npos);
}

TEST_F(Shards, FindDamagedBytes) {
  write(folder_);
  const PhotoShards shards(folder_);
  const std::string path = folder_ + "/photos-00000.shard";
  std::string bytes = read_text(path);
  bytes[64 + 2] ^= 1;  // photo 0 is empty, photo 1 has 7 bytes
  dir_.write("set/photos-00000.shard", bytes);
  std::string buffer;
  EXPECT_EQ(error_of([&] { shards.bytes(1, buffer); }), path + ": wrong checksum");
  EXPECT_EQ(shards.bytes(2, buffer), content(2));
}

}  // namespace
}  // namespace wisp
