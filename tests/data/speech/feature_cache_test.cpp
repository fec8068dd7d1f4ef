#include "data/speech/feature_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <numeric>
#include <thread>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensors.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

const Shape kShape{2, 3};

/// Features that count up from `number`.
Tensor features(float number) {
  Tensor made(kShape, DType::f32);
  std::iota(made.data<float>(), made.data<float>() + made.numel(), number);
  return made;
}

class KeptFeatures : public testing::Test {
 protected:
  /// The first of the cached features. Without any, features(number) is made and cached.
  float find(float number, const SpectrogramOptions& options = {}, const RawPcm& raw = {}) const {
    const Tensor found =
        FeatureCache(folder_, options, raw).find(audio_, kShape, [&] { return features(number); });
    const float first = found.data<float>()[0];
    EXPECT_EQ(values(found), values(features(first)));
    return first;
  }
  std::vector<std::string> entries() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(folder_)) paths.push_back(entry.path());
    return paths;
  }

  TempDir dir_;
  const std::string folder_ = dir_ / "made/cache";
  const std::string audio_ = dir_.write("a.flac", "sound");
};

TEST_F(KeptFeatures, AreThoseThatWereMade) {
  EXPECT_EQ(find(1), 1);
  EXPECT_EQ(find(2), 1);
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(KeptFeatures, AreOfTheSameFileUnderAnotherName) {
  find(1);
  fs::create_directory_symlink(dir_.path(), dir_ / "link");
  const Tensor found =
      FeatureCache(folder_, {}, {}).find(dir_ / "link/a.flac", kShape, [] { return features(2); });
  EXPECT_EQ(found.data<float>()[0], 1);
}

TEST_F(KeptFeatures, AreOfTheseOptions) {
  const SpectrogramOptions all[] = {
      {}, {.rate = 8000}, {.window_ms = 30}, {.stride_ms = 5}, {.mels = 40}};
  float number = 1;
  for (const SpectrogramOptions& options : all) find(number++, options);
  number = 1;
  for (const SpectrogramOptions& options : all) EXPECT_EQ(find(0, options), number++);
  EXPECT_EQ(find(0, {}, {.rate = 8000}), 0);
  EXPECT_EQ(find(-1, {}, {.channels = 2}), -1);
  EXPECT_EQ(find(-2, {}, {.big_endian = true}), -2);
}

TEST_F(KeptFeatures, AreMadeAgainForAnotherFile) {
  find(1);
  dir_.write("a.flac", "longer sound");
  EXPECT_EQ(find(2), 2) << "another size";
  fs::last_write_time(audio_, fs::last_write_time(audio_) + std::chrono::nanoseconds(1000));
  EXPECT_EQ(find(3), 3) << "another time";
  EXPECT_EQ(find(4), 3);
  EXPECT_EQ(entries().size(), 1u) << "what nobody needs is overwritten";
}

TEST_F(KeptFeatures, AreMadeAgainForAnotherFileOfTheSameSizeAndTime) {
  const fs::file_time_type time = fs::last_write_time(audio_);
  find(1);
  const std::string other = dir_.write("b.flac", "noise");
  fs::last_write_time(other, time);
  fs::rename(other, audio_);
  EXPECT_EQ(find(2), 2) << "put in its place";
  const auto changed = [&] {
    struct stat file;
    EXPECT_EQ(stat(audio_.c_str(), &file), 0);
    return std::pair(file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
  };
  const auto before = changed();
  do {  // until the file system's clock has advanced
    dir_.write("a.flac", "music");
    fs::last_write_time(audio_, time);
  } while (changed() == before);
  EXPECT_EQ(find(3), 3) << "written over";
  EXPECT_EQ(find(4), 3);
}

TEST_F(KeptFeatures, AreMadeAgainForAnotherShape) {
  find(1);
  const Tensor wide({3, 2}, DType::f32);
  const auto make = [&] { return wide; };
  EXPECT_EQ(FeatureCache(folder_, {}, {}).find(audio_, wide.shape(), make).shape(), wide.shape());
}

TEST_F(KeptFeatures, AreMadeAgainWhereDamaged) {
  find(1);
  const std::string entry = entries()[0], whole = read_text(entry);
  const auto damaged = [&](const std::string& bytes) {
    std::ofstream(entry, std::ios::binary) << bytes;
    EXPECT_EQ(find(2), 2);
    EXPECT_EQ(find(3), 2);
  };
  for (size_t bytes = 0; bytes < whole.size(); bytes += 41) damaged(whole.substr(0, bytes));
  for (size_t byte = 0; byte < whole.size(); byte += 37) {
    std::string changed = whole;
    changed[byte] ^= 1;
    damaged(changed);
  }
  damaged(whole + "x");
  damaged("another program's");
  EXPECT_EQ(entries(), std::vector{entry});
}

TEST_F(KeptFeatures, AreFoundByThreadsAtOnce) {
  std::vector<std::string> sounds;
  for (int i = 0; i < 8; ++i) sounds.push_back(dir_.write(concat("b", i, ".wav"), "sound"));
  const FeatureCache first(folder_, {}, {}), second(folder_, {}, {});
  {
    std::vector<std::jthread> threads;
    for (const FeatureCache* cache : {&first, &second, &first})
      threads.emplace_back([&, cache] {
        for (int again = 0; again < 2; ++again)
          for (size_t i = 0; i < sounds.size(); ++i) {
            const Tensor expected = features(static_cast<float>(i));
            const Tensor found = cache->find(sounds[i], kShape, [&] { return expected; });
            EXPECT_EQ(values(found), values(expected));
          }
      });
  }
  EXPECT_EQ(entries().size(), sounds.size()) << "nothing else is left";
}

TEST_F(KeptFeatures, NeedAFolderThatCanBeWritten) {
  const auto complaint = [](const std::string& folder) {
    return error_of([&] { FeatureCache(folder, {}, {}); });
  };
  EXPECT_EQ(complaint(audio_ + "/cache"),
            concat("data.cache: ", audio_, "/cache: cannot be made: Not a directory"));
  EXPECT_EQ(complaint("/proc"),
            "data.cache: /proc/probe: cannot be opened for writing: No such file or directory");
}

TEST_F(KeptFeatures, AreMissedOnceTheFolderIsGone) {
  const FeatureCache cache(folder_, {}, {});
  fs::remove_all(folder_);
  try {
    cache.find(audio_, kShape, [] { return features(1); });
    FAIL() << "no error";
  } catch (const FeatureCacheError& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with(concat("data.cache: ", folder_, "/"))) << what;
    EXPECT_TRUE(what.ends_with(": cannot be opened for writing: No such file or directory"))
        << what;
  }
}

TEST_F(KeptFeatures, AreNoneOfAFileThatIsNotThere) {
  const std::string none = dir_ / "none.wav";
  EXPECT_EQ(error_of([&] {
              FeatureCache(folder_, {}, {}).find(none, kShape, [] { return features(1); });
            }),
            none + ": No such file or directory");
}

TEST_F(KeptFeatures, AreNotThoseThatCouldNotBeMade) {
  const FeatureCache cache(folder_, {}, {});
  EXPECT_EQ(
      error_of([&] { cache.find(audio_, kShape, []() -> Tensor { throw Error("cut off"); }); }),
      "cut off");
  EXPECT_TRUE(entries().empty());
}

}  // namespace
}  // namespace wisp
