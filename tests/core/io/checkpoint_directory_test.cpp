#include "core/io/checkpoint_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/io/checksum.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

const CheckpointFacts kFacts = {{"step", "120"}};

/// Saves a checkpoint as two workers do, with one file each.
void save(const TempDir& dir, const std::string& content) {
  prepare_directory(dir / "c.tmp");
  dir.write("c.tmp/rank_0.safetensors", content);
  dir.write("c.tmp/rank_1.safetensors", content + content);
  publish_directory(dir / "c.tmp", dir / "c", kFacts);
}

std::string found(const TempDir& dir) {
  const std::string path = find_checkpoint(dir / "c");
  verify_checkpoint(path);
  return read_text(path + "/rank_0.safetensors");
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
  dir.write("c.tmp/rank_7.safetensors", "stale");
  save(dir, "one");
  EXPECT_FALSE(fs::exists(dir / "c/rank_7.safetensors"));
}

TEST(CheckpointDirectory, EachMomentOfAPublicationHasAWholeCheckpoint) {
  const TempDir dir;
  save(dir, "one");
  prepare_directory(dir / "c.tmp");
  dir.write("c.tmp/rank_0.safetensors", "two");
  EXPECT_EQ(found(dir), "one");
  fs::rename(dir / "c", dir / "c.old");  // killed between the two renames
  EXPECT_EQ(found(dir), "one");
  save(dir, "three");  // the next run saves again
  EXPECT_EQ(found(dir), "three");
  EXPECT_FALSE(fs::exists(dir / "c.old"));
  fs::copy(dir / "c", dir / "c.old");  // killed before the old one was removed
  EXPECT_EQ(found(dir), "three");
  save(dir, "four");
  EXPECT_EQ(found(dir), "four");
  EXPECT_FALSE(fs::exists(dir / "c.old"));
}

TEST(CheckpointDirectory, KeepsItsFacts) {
  const TempDir dir;
  save(dir, "one");
  EXPECT_EQ(checkpoint_facts(dir / "c"), kFacts);
  EXPECT_EQ(verify_checkpoint(dir / "c"), kFacts);
}

TEST(CheckpointDirectory, DamageIsNamed) {
  const TempDir dir;
  save(dir, "one");
  const auto damage = [&] { return error_of([&] { verify_checkpoint(dir / "c"); }); };
  dir.write("c/rank_1.safetensors", "onetwo");
  EXPECT_EQ(damage(), (dir / "c/rank_1.safetensors") +
                          ": is damaged: its checksum is ab34a020, the manifest says d378a16a");
  dir.write("c/rank_1.safetensors", "one");
  EXPECT_EQ(damage(), (dir / "c/rank_1.safetensors") + ": has 3 bytes, the manifest says 6");
  fs::remove(dir / "c/rank_1.safetensors");
  EXPECT_EQ(damage(), (dir / "c/rank_1.safetensors") + ": there is no such file");
  fs::remove_all(dir / "c");
  EXPECT_EQ(error_of([&] { find_checkpoint(dir / "c"); }),
            (dir / "c") + ": there is no checkpoint");
}

TEST(CheckpointDirectory, ADamagedManifestIsNamed) {
  const TempDir dir;
  save(dir, "one");
  const std::string manifest = dir / "c/manifest.json";
  const std::string good = read_text(manifest);
  const auto damage = [&](const std::string& content) {
    dir.write("c/manifest.json", content);
    return error_of([&] { verify_checkpoint(dir / "c"); });
  };
  EXPECT_EQ(damage("{").find(manifest + ": is damaged: "), 0u);
  EXPECT_EQ(damage("[]").find(manifest + ": is damaged: "), 0u);
  std::string other = good;
  other.replace(other.find("120"), 3, "121");  // still JSON
  EXPECT_EQ(damage(other).find(manifest + ": is damaged: its checksum is "), 0u);
  other = good;
  other.replace(other.find("\"format\": 1"), 11, "\"format\": 9");
  EXPECT_EQ(damage(other), manifest + ": is of format 9, this program reads 1");
  other.replace(other.find("\"format\": 9"), 11, "\"format\": 1e99");
  EXPECT_EQ(damage(other), manifest + ": is damaged: 1e+99 is no whole number");
  other = good;
  other.insert(other.rfind('}'), ",\"x\":" + std::string(300'000, '[') + std::string(300'000, ']'));
  EXPECT_EQ(damage(other), manifest + ": is damaged: it is nested too deeply");
  fs::remove(manifest);
  EXPECT_EQ(error_of([&] { verify_checkpoint(dir / "c"); }), manifest + ": there is no such file");
}

TEST(CheckpointDirectory, AManifestNamesFilesOfItsDirectoryOnly) {
  const TempDir dir;
  save(dir, "one");
  dir.write("outside", "one");
  const std::string good = read_text(dir / "c/manifest.json");
  for (const std::string name :
       {"../outside", "/etc/passwd", "a/b", "..", ".", "", "../c/rank_0.safetensors"}) {
    std::string manifest = good;
    const std::string own = "rank_0.safetensors";
    manifest.replace(manifest.find("\"" + own + "\"") + 1, own.size(), name);
    nlohmann::json content = nlohmann::json::parse(manifest);
    content["crc32c"] = checksum_text(0);
    const std::string zeroed = content.dump();
    content["crc32c"] = checksum_text(crc32c(zeroed.data(), zeroed.size()));
    dir.write("c/manifest.json", content.dump(1));
    EXPECT_EQ(error_of([&] { verify_checkpoint(dir / "c"); }),
              concat(dir / "c/manifest.json", ": names the file '", name,
                     "', expected a name without a path"));
  }
}

TEST(CheckpointDirectory, StepsAreFoundAndRemoved) {
  const TempDir dir;
  EXPECT_TRUE(checkpoint_steps(dir / "absent").empty());
  for (const int64_t step : {9, 10, 100}) {
    prepare_directory(dir / "saving.tmp");
    publish_directory(dir / "saving.tmp", checkpoint_path(dir.path(), step), kFacts);
  }
  fs::rename(dir / "step_10", dir / "step_10.old");  // killed between the two renames
  for (const char* other : {"step_", "step_7x", "step_-3", "step_8.tmp", "saving.tmp",
                            "step_9007199254740993", "step_9223372036854775807"})
    fs::create_directory(dir / other);
  EXPECT_EQ(checkpoint_steps(dir.path()), (std::vector<int64_t>{9, 10, 100}));
  remove_checkpoint(dir.path(), 10);
  remove_checkpoint(dir.path(), 100);
  EXPECT_EQ(checkpoint_steps(dir.path()), (std::vector<int64_t>{9}));
  EXPECT_FALSE(fs::exists(dir / "removing.tmp"));
}

TEST(CheckpointDirectory, OthersFilesAreNoCheckpointsAndStay) {
  const TempDir dir;
  const auto publish = [&](int64_t step) {
    prepare_directory(saving_path(dir.path()));
    dir.write("saving.tmp/shared.safetensors", "weights");
    publish_directory(saving_path(dir.path()), checkpoint_path(dir.path(), step), kFacts);
  };
  for (const int64_t step : {1, 2, 3}) publish(step);
  const std::vector<std::string> foreign = {
      dir.write("step_1/notes.txt", "mine"),      dir.write("step_4/model.pt", "mine"),
      dir.write("step_backup/weights", "mine"),   dir.write("step_2_mine/weights", "mine"),
      dir.write("step_05/manifest.json", "mine"), dir.write("step_6", "mine"),
      dir.write("epoch=3.ckpt", "mine"),          dir.write("step_2/model.safetensors", "mine")};
  EXPECT_EQ(checkpoint_steps(dir.path()), (std::vector<int64_t>{1, 2, 3}));
  for (const int64_t step : {4, 6}) {
    const std::string error = error_of([&] { publish(step); });
    EXPECT_EQ(error,
              checkpoint_path(dir.path(), step) +
                  ": is there already, and holds files that no checkpoint has; move them away");
  }
  for (const int64_t step : {1, 3, 4, 5, 6}) remove_checkpoint(dir.path(), step);
  EXPECT_EQ(checkpoint_steps(dir.path()), std::vector<int64_t>{2});
  dir.write("saving.tmp/rank_12.safetensors", "of a larger world");
  remove_checkpoints(dir.path());
  for (const std::string& path : foreign) EXPECT_EQ(read_text(path), "mine") << path;
  for (const char* gone : {"step_1/shared.safetensors", "step_2/manifest.json", "step_3",
                           "step_3.old", "saving.tmp", "removing.tmp"})
    EXPECT_FALSE(fs::exists(dir / gone)) << gone;
}

TEST(CheckpointDirectory, NothingIsRemovedThroughALink) {
  const TempDir dir;
  prepare_directory(dir / "there/step_1");
  dir.write("there/step_1/shared.safetensors", "weights");
  dir.write("there/step_1/manifest.json", "{}");
  fs::create_directory(dir / "run");
  fs::create_directory_symlink(dir / "there/step_1", dir / "run/step_1");
  remove_checkpoint(dir / "run", 1);
  EXPECT_FALSE(fs::is_symlink(dir / "run/step_1"));
  fs::create_directory_symlink(dir / "there", dir / "run/checkpoints");
  remove_checkpoints(dir / "run/checkpoints");
  EXPECT_FALSE(fs::is_symlink(dir / "run/checkpoints"));
  EXPECT_EQ(read_text(dir / "there/step_1/shared.safetensors"), "weights");
}

TEST(CheckpointDirectory, AnothersFileWhereACheckpointIsWrittenIsNamed) {
  const TempDir dir;
  dir.write("c.tmp/notes.txt", "mine");
  EXPECT_EQ(error_of([&] { prepare_directory(dir / "c.tmp"); }),
            (dir / "c.tmp") + ": holds files that no checkpoint has; move them away");
  EXPECT_EQ(read_text(dir / "c.tmp/notes.txt"), "mine");
}

/// What a process leaves that was killed while it removed a checkpoint.
TEST(CheckpointDirectory, ReplacesWhatIsLeftOfOne) {
  for (const std::vector<std::string>& left : std::vector<std::vector<std::string>>{
           {}, {"rank_0.safetensors"}, {"shared.safetensors"}, {".wisp-7-0.tmp"}}) {
    for (const char* suffix : {"", ".old"}) {
      const TempDir dir;
      const std::string step = concat("step_16", suffix);
      fs::create_directories(dir / step);
      for (const std::string& name : left) dir.write(step + "/" + name, "half");
      prepare_directory(dir / "saving.tmp");
      dir.write("saving.tmp/shared.safetensors", "whole");
      publish_directory(dir / "saving.tmp", checkpoint_path(dir.path(), 16), kFacts);
      EXPECT_EQ(verify_checkpoint(dir / "step_16"), kFacts);
      EXPECT_EQ(read_text(dir / "step_16/shared.safetensors"), "whole");
      EXPECT_FALSE(fs::exists(dir / "step_16.old"));
    }
  }
  const TempDir dir;
  dir.write("step_16/notes.txt", "mine");
  prepare_directory(dir / "saving.tmp");
  EXPECT_NE(error_of([&] {
              publish_directory(dir / "saving.tmp", checkpoint_path(dir.path(), 16), kFacts);
            }).find("step_16: is there already, and holds files that no checkpoint has"),
            std::string::npos);
  EXPECT_EQ(read_text(dir / "step_16/notes.txt"), "mine");
}

TEST(CheckpointDirectory, AFailedPublicationLeavesTheOldOneAndMayBeRepeated) {
  const TempDir dir;
  save(dir, "one");
  prepare_directory(dir / "c.tmp");
  dir.write("c.tmp/rank_0.safetensors", "two");
  fs::create_symlink("/dev/full", dir / "c.tmp/manifest.json");
  EXPECT_EQ(error_of([&] { publish_directory(dir / "c.tmp", dir / "c", kFacts); }),
            (dir / "c.tmp/manifest.json") + ": cannot be written: No space left on device");
  EXPECT_EQ(found(dir), "one");
  fs::remove(dir / "c.tmp/manifest.json");
  dir.write("c.tmp/manifest.json", "half");
  publish_directory(dir / "c.tmp", dir / "c", kFacts);
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
