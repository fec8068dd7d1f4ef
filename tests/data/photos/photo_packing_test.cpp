#include "data/photos/photo_packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "data/decoding/image_codec.h"
#include "data/decoding/image_file.h"
#include "data/decoding/photo.h"
#include "data/photos/photo_files.h"
#include "data/photos/photo_shards.h"
#include "tests/support/error_of.h"
#include "tests/support/random_images.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

class Packing : public testing::Test {
 protected:
  Packing() {
    for (int i = 0; i < 40; ++i) {
      const Tensor image = random_images({i + 1, 20 + i, 60 - i, 3}).image(i);
      dir_.write("photos/" + name(i), i % 2 ? encode_jpeg(image, 95) : encode_png(image));
    }
    photos_ = photos_by_folder(dir_ / "photos", classes_).photos;
  }
  static std::string name(int i) {
    return concat(i < 20 ? "ants/" : "bees/", 100 + i, i % 2 ? ".jpg" : ".png");
  }
  PackedPhotos pack(const std::string& out, const PackOptions& options) const {
    return pack_photos(*photos_, classes_, dir_ / out, options, [](int64_t) { return true; });
  }
  /// The packed bytes by name.
  std::map<std::string, std::string> packed(const std::string& out) const {
    const PhotoShards shards(dir_ / out);
    std::map<std::string, std::string> bytes;
    std::string buffer;
    for (int64_t i = 0; i < shards.count(); ++i) {
      EXPECT_EQ(shards.label(i), shards.name(i).starts_with("ants") ? 0 : 1);
      bytes[shards.name(i)] = shards.bytes(i, buffer);
    }
    return bytes;
  }

  const TempDir dir_;
  const std::vector<std::string> classes_ = {"ants", "bees"};
  std::shared_ptr<const PhotoSet> photos_;
};

TEST_F(Packing, KeepsTheBytesAndMixesTheClasses) {
  const PackedPhotos report = pack("out", {});
  EXPECT_EQ(report.photos, 40);
  const auto bytes = packed("out");
  ASSERT_EQ(bytes.size(), 40u);
  int64_t sum = 0;
  for (const auto& [name, content] : bytes) {
    EXPECT_EQ(content, read_text(dir_ / ("photos/" + name)));
    sum += std::ssize(content);
  }
  EXPECT_EQ(report.bytes, sum);
  const PhotoShards shards(dir_ / "out");
  int64_t first_half = 0;
  for (int64_t i = 0; i < 20; ++i) first_half += shards.label(i);
  EXPECT_GT(first_half, 4);
  EXPECT_LT(first_half, 16);
}

TEST_F(Packing, ScalesOnlyWhatIsLarger) {
  pack("out", {.side = 30, .quality = 80});
  for (const auto& [name, content] : packed("out")) {
    const std::string before = read_text(dir_ / ("photos/" + name));
    const Photo original(before), stored(content);
    const int64_t shorter = std::min(original.height(), original.width());
    if (shorter <= 30) {
      EXPECT_EQ(content, before);
    } else {
      EXPECT_EQ(stored.height(), original.height() * 30 / shorter);
      EXPECT_EQ(stored.width(), original.width() * 30 / shorter);
      EXPECT_EQ(content.substr(0, 2), "\xff\xd8") << "a JPEG";
    }
  }
}

TEST_F(Packing, RawPhotosAreThePixels) {
  pack("out", {.side = 30, .raw = true});
  for (const auto& [name, content] : packed("out")) {
    EXPECT_EQ(content.substr(0, 3), "P6\n");
    const std::string before = read_text(dir_ / ("photos/" + name));
    const Photo original(before), stored(content);
    if (std::min(original.height(), original.width()) > 30) continue;
    const Region whole{0, 0, original.height(), original.width()};
    const Tensor pixels = stored.decode(whole).pixels, expected = original.decode(whole).pixels;
    EXPECT_EQ(std::memcmp(pixels.raw(), expected.raw(), static_cast<size_t>(pixels.bytes())), 0);
  }
}

TEST_F(Packing, DoesNotDependOnTheThreads) {
  pack("one", {.side = 30});
  pack("three", {.side = 30, .jobs = 3});
  for (const char* file : {"photos.index", "photos-00000.shard"})
    EXPECT_EQ(read_text(dir_ / (std::string("one/") + file)),
              read_text(dir_ / (std::string("three/") + file)))
        << file;
}

TEST_F(Packing, TellsDamagedPhotosAndKeepsThem) {
  fs::resize_file(dir_ / ("photos/" + name(3)), 100);
  fs::resize_file(dir_ / ("photos/" + name(4)), 0);
  const PackedPhotos report = pack("out", {.side = 10});
  ASSERT_EQ(report.damaged.size(), 2u);
  for (const std::string& fault : report.damaged)
    EXPECT_TRUE(fault.starts_with(dir_ / "photos/ants/10")) << fault;
  EXPECT_EQ(packed("out").at(name(3)), read_text(dir_ / ("photos/" + name(3))));
  fs::remove(dir_ / ("photos/" + name(5)));
  EXPECT_TRUE(error_of([&] { pack("out2", {}); }).starts_with(dir_ / ("photos/" + name(5))));
}

TEST_F(Packing, NamesWhatShardsAreMadeOf) {
  pack("out", {.side = 30});
  const std::string origin = origin_of_shards(dir_ / "out");
  EXPECT_EQ(origin, packing_origin(*photos_, {.side = 30, .jobs = 7}));
  EXPECT_EQ(origin.substr(0, 11), "40 photos (");
  EXPECT_EQ(origin.substr(origin.find(')')), ") as JPEGs of side 30 and quality 90");
  for (const PackOptions& other :
       {PackOptions{}, PackOptions{.side = 31}, PackOptions{.side = 30, .quality = 91},
        PackOptions{.side = 30, .raw = true}})
    EXPECT_NE(packing_origin(*photos_, other), origin);
  fs::remove(dir_ / ("photos/" + name(7)));
  EXPECT_NE(packing_origin(*photos_by_folder(dir_ / "photos", classes_).photos, {.side = 30}),
            origin);
}

TEST_F(Packing, LeavesNothingWhenStopped) {
  const PackedPhotos report =
      pack_photos(*photos_, classes_, dir_ / "out", {}, [](int64_t) { return false; });
  EXPECT_TRUE(report.stopped);
  EXPECT_TRUE(fs::is_empty(dir_ / "out"));
}

}  // namespace
}  // namespace wisp
