#include <gtest/gtest.h>

#include <string>

#include "data/decoding/image_container.h"
#include "tests/support/sound_files.h"

namespace wisp {
namespace {

using namespace std::string_literals;

/// A WebP file of chunks (name, body).
std::string webp(const std::vector<std::pair<std::string, std::string>>& chunks) {
  std::string body = "WEBP";
  for (const auto& [name, bytes] : chunks)
    body += name + little_endian(bytes.size(), 4) + bytes + std::string(bytes.size() % 2, '\0');
  return "RIFF" + little_endian(body.size(), 4) + body;
}

/// A TIFF directory of two entries. The second is an orientation.
std::string tiff(uint64_t orientation, bool big = false, uint64_t type = 3) {
  const auto number = [&](uint64_t value, int bytes) {
    return big ? big_endian(value, bytes) : little_endian(value, bytes);
  };
  return (big ? "MM" : "II") + number(42, 2) + number(8, 4) + number(2, 2) + number(0x100, 2) +
         number(4, 2) + number(1, 4) + number(6, 4) + number(0x112, 2) + number(type, 2) +
         number(1, 4) + number(orientation, 2) + number(0, 2) + number(0, 4);
}

TEST(WebpOrientation, IsFoundBehindOtherChunks) {
  for (const int value : {1, 2, 6, 8}) {
    const auto orientation = static_cast<uint64_t>(value);
    EXPECT_EQ(webp_orientation(webp({{"VP8X", "odd"}, {"EXIF", tiff(orientation)}})), value);
    EXPECT_EQ(webp_orientation(webp({{"EXIF", tiff(orientation, true)}})), value);
    EXPECT_EQ(webp_orientation(webp({{"EXIF", "Exif\0\0"s + tiff(orientation)}})), value);
  }
}

TEST(WebpOrientation, IsNoneWhereItCannotBeRead) {
  for (const std::string& bytes :
       {""s, "RIFF"s, "\xff\xd8\xff"s, webp({}), webp({{"VP8 ", "picture"}}), webp({{"EXIF", ""}}),
        webp({{"EXIF", "text"}}), webp({{"EXIF", tiff(0)}}), webp({{"EXIF", tiff(9)}}),
        webp({{"EXIF", tiff(6, false, 4)}})})
    EXPECT_EQ(webp_orientation(bytes), 1);
  std::string far = tiff(6);
  far.replace(4, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(webp_orientation(webp({{"EXIF", far}})), 1);
}

TEST(WebpOrientation, DoesNotReadBehindTheEnd) {
  const std::string whole = webp({{"EXIF", tiff(6)}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const int found = webp_orientation(std::string(whole.substr(0, size)));
    EXPECT_TRUE(found == 1 || found == 6) << size;
  }
}

}  // namespace
}  // namespace wisp
