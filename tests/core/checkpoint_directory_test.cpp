#include "core/checkpoint_directory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

/// What N workers do, here with one file each.
void save(const TempDir& dir, const std::string& content) {
  prepare_directory(dir / "c.tmp");
  dir.write("c.tmp/rank0", content);
  dir.write("c.tmp/rank1", content + content);
  publish_directory(dir / "c.tmp", dir / "c");
}

std::string found(const TempDir& dir) {
  const std::string path = find_checkpoint(dir / "c");
  verify_checkpoint(path);
  return read_text(path + "/rank0");
}

TEST(CheckpointDirectory, IsPublishedAndReplaced) {
  const TempDir dir;
  save(dir, "one");
  EXPECT_EQ(found(dir), "one");
  save(dir, "two");
  EXPECT_EQ(found(dir), "two");
  EXPECT_FALSE(fs::exists(dir / "c.old"));
  EXPECT_FALSE(fs::exists(dir / "c.tmp"));
}

TEST(CheckpointDirectory, ManifestDependsOnContentAlone) {
  const TempDir here, there;
  save(here, "x");
  save(there, "x");
  EXPECT_EQ(read_text(here / "c/manifest.json"), read_text(there / "c/manifest.json"));
  save(there, "y");
  EXPECT_NE(read_text(here / "c/manifest.json"), read_text(there / "c/manifest.json"));
}

TEST(CheckpointDirectory, LeftoversOfAnInterruptedSaveGo) {
  const TempDir dir;
  dir.write("c.tmp/rank7", "stale");
  save(dir, "one");
  EXPECT_FALSE(fs::exists(dir / "c/rank7"));
}

TEST(CheckpointDirectory, EachMomentOfAPublicationHasAWholeCheckpoint) {
  const TempDir dir;
  save(dir, "one");
  prepare_directory(dir / "c.tmp");
  dir.write("c.tmp/rank0", "two");
  EXPECT_EQ(found(dir), "one");
  fs::rename(dir / "c", dir / "c.old");  // killed between the two renames
  EXPECT_EQ(found(dir), "one");
  save(dir, "three");  // and the next run saves again
  EXPECT_EQ(found(dir), "three");
  EXPECT_FALSE(fs::exists(dir / "c.old"));
  fs::copy(dir / "c", dir / "c.old");  // killed before the old one was removed
  EXPECT_EQ(found(dir), "three");
  save(dir, "four");
  EXPECT_EQ(found(dir), "four");
  EXPECT_FALSE(fs::exists(dir / "c.old"));
}

TEST(CheckpointDirectory, DamageIsNamed) {
  const TempDir dir;
  save(dir, "one");
  dir.write("c/rank1", "onetwo");
  EXPECT_EQ(
      error_of([&] { verify_checkpoint(dir / "c"); }),
      (dir / "c/rank1") + ": is damaged: its checksum is ab34a020, the manifest says d378a16a");
  dir.write("c/rank1", "one");
  EXPECT_EQ(error_of([&] { find_checkpoint(dir / "c"); }),
            (dir / "c/rank1") + ": has 3 bytes, the manifest says 6");
  fs::remove(dir / "c/rank1");
  EXPECT_EQ(error_of([&] { find_checkpoint(dir / "c"); }),
            (dir / "c/rank1") + ": cannot be read: No such file or directory");
  dir.write("c/manifest.json", "{");
  EXPECT_EQ(error_of([&] {
              find_checkpoint(dir / "c");
            }).find((dir / "c/manifest.json") + ": is damaged: "),
            0u);
  fs::remove(dir / "c/manifest.json");
  EXPECT_EQ(error_of([&] { find_checkpoint(dir / "c"); }),
            (dir / "c/manifest.json") + ": cannot be opened: No such file or directory");
  fs::remove_all(dir / "c");
  EXPECT_EQ(error_of([&] { find_checkpoint(dir / "c"); }),
            (dir / "c") + ": there is no checkpoint");
}

TEST(CheckpointDirectory, AFailedPublicationLeavesTheOldOneAndMayBeRepeated) {
  const TempDir dir;
  save(dir, "one");
  prepare_directory(dir / "c.tmp");
  dir.write("c.tmp/rank0", "two");
  fs::create_symlink("/dev/full", dir / "c.tmp/manifest.json");
  EXPECT_EQ(error_of([&] { publish_directory(dir / "c.tmp", dir / "c"); }),
            (dir / "c.tmp/manifest.json") + ": cannot be written: No space left on device");
  EXPECT_EQ(found(dir), "one");
  fs::remove(dir / "c.tmp/manifest.json");
  dir.write("c.tmp/manifest.json", "half");
  publish_directory(dir / "c.tmp", dir / "c");
  EXPECT_EQ(found(dir), "two");
}

TEST(CheckpointDirectory, APlaceThatCannotBeWrittenIsNamed) {
  const TempDir dir;
  const std::string file = dir.write("file", "");
  EXPECT_EQ(error_of([&] { prepare_directory(file + "/c.tmp"); }).find(file + "/c.tmp: cannot be "),
            0u);
}

}  // namespace
}  // namespace wisp
