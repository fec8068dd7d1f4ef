#include "data/decoding/image_container.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

using namespace std::string_literals;

// A JPEG: the start, an empty comment, a scan of four bytes with stuffing and a restart, the end.
const std::string kJpeg = "\xff\xd8\xff\xfe\0\2\xff\xda\0\2\1\xff\0\xff\xd0\2\xff\xd9"s;
const std::string kSignature = "\x89PNG\r\n\x1a\n";
// The end chunk of every PNG, with its checksum.
const std::string kEnd = "\0\0\0\0IEND\xae\x42\x60\x82"s;

std::string refusal(const std::string& bytes) {
  return error_of([&] { checked_container(bytes); });
}

TEST(ImageContainer, TakesAWholeJpegAsItIs) {
  EXPECT_EQ(checked_container(kJpeg), kJpeg);
  EXPECT_EQ(checked_container(kJpeg + "more"), kJpeg + "more") << "what cameras append";
}

TEST(ImageContainer, FindsWhereAJpegIsCutOff) {
  for (size_t bytes = 3; bytes < kJpeg.size(); ++bytes)
    EXPECT_EQ(refusal(kJpeg.substr(0, bytes)).substr(0, 20), "the file is cut off:")
        << bytes << " bytes";
}

TEST(ImageContainer, DoesNotTakeAThumbnailsEndForThePictures) {
  const std::string thumbnail = "\xff\xd8\xff\xe1\0\6\xff\xd8\xff\xd9"s;
  EXPECT_EQ(refusal(thumbnail + "\xff\xda\0\2\1\2"s).substr(0, 20), "the file is cut off:");
}

TEST(ImageContainer, DropsWhatDoesNotDecideAPng) {
  const std::string comment = "\0\0\0\2tEXtabWRNG"s;
  EXPECT_EQ(checked_container(kSignature + comment + kEnd + "more"), kSignature + kEnd);
}

TEST(ImageContainer, FindsDamageInAPng) {
  std::string damaged = kSignature + kEnd;
  damaged.back() ^= 1;
  EXPECT_EQ(refusal(damaged),
            "the file is damaged: the checksum of the PNG chunk at byte 8 is wrong");
  EXPECT_EQ(refusal(kSignature + kEnd.substr(0, 8)),
            "the file is cut off: it has 16 bytes, and a chunk of a PNG ends at 20 or later");
  EXPECT_EQ(
      refusal(kSignature + "\xff\xff\xff\xffIDAT1234"),
      "the file is cut off: it has 20 bytes, and a chunk of a PNG ends at 4294967315 or later");
}

TEST(ImageContainer, FindsACutOffWebP) {
  const std::string webp = "RIFF\x08\0\0\0WEBPabcd"s;
  EXPECT_EQ(checked_container(webp), webp);
  EXPECT_EQ(refusal(webp.substr(0, 15)),
            "the file is cut off: it has 15 bytes, and the WebP ends at 16 or later");
}

TEST(ImageContainer, RefusesWhatIsNoPicture) {
  for (const std::string& bytes : {""s, "x"s, "hello world"s, "RIFF\1\0\0\0WAVE"s})
    EXPECT_EQ(refusal(bytes), "the file is no picture; JPEG, PNG and WebP are read");
}

}  // namespace
}  // namespace wisp
