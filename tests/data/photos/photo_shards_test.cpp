#include "data/photos/photo_shards.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <set>

#include "core/io/checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/sealed_files.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

class Shards : public testing::Test {
 protected:
  /// Nine photos of three classes in shards of some 100 bytes.
  void write(const std::string& folder, const std::string& salt = "") {
    PhotoShardWriter writer(folder, {"ants", "bees", "wasps"}, "nine photos", 100);
    for (int i = 0; i < 9; ++i) writer.add(name(i), i % 3, content(i) + salt);
    writer.finish();
  }
  static std::string name(int i) { return "x/" + std::to_string(i * i) + ".jpg"; }
  static std::string content(int i) {
    return std::string(static_cast<size_t>(7 * i), static_cast<char>('a' + i));
  }
  /// Replaces a list of the index by change(list).
  void change_index(const std::string& list, const std::function<Tensor(const Tensor&)>& change) {
    CheckpointWriter changed;
    {
      const CheckpointReader index(folder_ + "/photos.index");
      for (const char* key : {"format", "classes", "origin"})
        changed.metadata(key, index.metadata(key));
      for (const std::string& name : index.names()) {
        const SafetensorsEntry& entry = index.entry(name);
        const Tensor numbers({entry.extents[0]}, safetensors_dtype(entry.dtype).value());
        index.read(name, numbers);
        changed.add(name, name == list ? change(numbers) : numbers);
      }
    }
    changed.write(folder_ + "/photos.index");
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
  EXPECT_EQ(origin_of_shards(folder_), "nine photos");
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
    PhotoShardWriter writer(folder_, {"ants"}, "five photos", 10);
    for (int i = 0; i < 5; ++i) writer.add(name(i), 0, content(i));
    EXPECT_EQ(error_of([&] { write(folder_); }),
              folder_ + "/photos.lock: is held by another process");
    EXPECT_FALSE(has_shards(folder_));
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_EQ(error_of([&] { PhotoShardWriter(folder_, {"ants"}, "none").finish(); }),
            folder_ + ": no photos to pack");
}

TEST_F(Shards, ReplaceWhatAKilledWriterLeft) {
  dir_.write("set/photos.lock", "");
  for (const int shard : {0, 1, 2, 5, 8})  // it was killed while it removed them
    dir_.write(concat("set/photos-0000", shard, ".shard"), "the first bytes");
  write(folder_);
  EXPECT_EQ(PhotoShards(folder_).count(), 9);
  std::set<std::string> there;
  for (const auto& entry : fs::directory_iterator(folder_)) there.insert(entry.path().filename());
  EXPECT_EQ(there,
            (std::set<std::string>{"photos-00000.shard", "photos-00001.shard", "photos-00002.shard",
                                   "photos-00003.shard", "photos-00004.shard", "photos.index"}));
}

// An index with right checksums, as a faulty writer would make it.
TEST_F(Shards, RefuseAnIndexWhoseNumbersDoNotFit) {
  const auto refusal_of = [&](const std::string& list, int64_t at, int64_t value) {
    write(folder_);
    change_index(list, [&](const Tensor& numbers) {
      if (numbers.dtype() == DType::i32) {
        numbers.data<int32_t>()[at] = static_cast<int32_t>(value);
      } else {
        numbers.data<int64_t>()[at] = value;
      }
      return numbers;
    });
    const std::string words = refusal();
    fs::remove_all(folder_);
    return words;
  };
  const std::string index = folder_ + "/photos.index: ";
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(refusal_of("labels", 2, 3), index + "photo 2 is of class 3 of 3");
  EXPECT_EQ(refusal_of("labels", 2, -1), index + "photo 2 is of class -1 of 3");
  EXPECT_EQ(refusal_of("shards", 8, 9), index + "photo 8 is in shard 9 of 5");
  EXPECT_EQ(refusal_of("shards", 8, -1), index + "photo 8 is in shard -1 of 5");
  EXPECT_EQ(refusal_of("sizes", 1, most),
            concat(index, "photo 1 has ", most, " bytes at byte 64, which shard 0 does not have"));
  EXPECT_EQ(refusal_of("sizes", 1, -1),
            index + "photo 1 has -1 bytes at byte 64, which shard 0 does not have");
  EXPECT_EQ(refusal_of("offsets", 1, 63),
            index + "photo 1 has 7 bytes at byte 63, which shard 0 does not have");
  EXPECT_EQ(refusal_of("offsets", 1, most),
            concat(index, "photo 1 has 7 bytes at byte ", most, ", which shard 0 does not have"));
  EXPECT_EQ(refusal_of("lengths", 0, 63), index + "shard 0 has 63 bytes, expected at least 64");
  EXPECT_EQ(refusal_of("name_ends", 8, 1000), index + "photo 8 has no name of its own");
  EXPECT_EQ(refusal_of("name_ends", 3, 1), index + "photo 3 has no name of its own");
  write(folder_);
  change_index("sizes", [](const Tensor& numbers) { return numbers.rows(0, 8); });
  EXPECT_EQ(refusal(), index + "lists of 8 and of 9 photos");
}

// The lists' shapes ask for more memory than there is, but the file has no byte of them.
TEST_F(Shards, RefuseAListOfAnotherTypeBeforeTheyTakeMemory) {
  write(folder_);
  const CheckpointReader good(folder_ + "/photos.index");
  const int64_t many = int64_t{1} << 57;
  for (const std::string list :
       {"labels", "shards", "checksums", "offsets", "sizes", "name_ends", "lengths", "names"}) {
    const std::map<std::string, Tensor> lists = tensors_in(folder_ + "/photos.index");
    for (const char* dtype : {"X9", "int64"}) {
      SafetensorsHeader header;
      std::string data;
      for (const char* key : {"format", "classes", "origin"})
        header.metadata[key] = good.metadata(key);
      for (const auto& [name, tensor] : lists) {
        const auto begin = std::ssize(data);
        if (name == list) {
          header.tensors[name] = {dtype, {many}, begin, begin};
          continue;
        }
        data.append(reinterpret_cast<const char*>(tensor.raw()),
                    static_cast<size_t>(tensor.bytes()));
        header.tensors[name] = {
            safetensors_name(tensor.dtype()), {tensor.numel()}, begin, std::ssize(data)};
      }
      const TempDir other;
      write_sealed(other, "photos.index", header, data);
      EXPECT_EQ(error_of([&] { PhotoShards{other.path()}; }),
                concat(other / "photos.index", ": ", list, " is ", dtype, " [", many,
                       "], expected ", safetensors_name(lists.at(list).dtype())));
    }
  }
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
  EXPECT_EQ(refusal(), shard + ": there is no such file");
  ASSERT_EQ(mkfifo(shard.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), shard + ": it is no file, but a pipe");
  fs::resize_file(folder_ + "/photos.index", 100);
  EXPECT_NE(refusal().find("photos.index"), std::string::npos);
  fs::remove(folder_ + "/photos.index");
  ASSERT_EQ(mkfifo((folder_ + "/photos.index").c_str(), 0600), 0);
  EXPECT_EQ(refusal(), folder_ + "/photos.index: it is no file, but a pipe");
  EXPECT_EQ(error_of([&] { classes_of_shards(folder_); }),
            folder_ + "/photos.index: it is no file, but a pipe");
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
