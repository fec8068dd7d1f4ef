#include "data/decoding/image_container.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/png_files.h"
#include "tests/support/sound_files.h"

namespace wisp {
namespace {

using namespace std::string_literals;

// A JPEG: the start, an empty comment, a scan of four bytes with stuffing and a restart, the end.
const std::string kJpeg = "\xff\xd8\xff\xfe\0\2\xff\xda\0\2\1\xff\0\xff\xd0\2\xff\xd9"s;
const std::string kHead = kPngSignature + png_header(1, 1);
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
  EXPECT_EQ(checked_container(kHead + comment + kEnd + "more"), kHead + kEnd);
}

TEST(ImageContainer, FindsDamageInAPng) {
  std::string damaged = kHead + kEnd;
  damaged.back() ^= 1;
  EXPECT_EQ(refusal(damaged),
            "the file is damaged: the checksum of the PNG chunk at byte 33 is wrong");
  EXPECT_EQ(refusal(kHead + kEnd.substr(0, 8)),
            "the file is cut off: it has 41 bytes, and a chunk of a PNG ends at 45 or later");
  EXPECT_EQ(
      refusal(kHead + "\xff\xff\xff\xffIDAT1234"),
      "the file is cut off: it has 45 bytes, and a chunk of a PNG ends at 4294967340 or later");
}

// Else a reader of the first chunk and a reader of IHDR would see two sizes.
TEST(ImageContainer, TakesNoPngThatBeginsWithAnotherChunk) {
  const std::string size = big_endian(64, 4) + big_endian(48, 4) + "\x08\2\0\0\0"s;
  const std::string large = png_header(20000, 20000);
  for (const std::string& first :
       {png_chunk("abCd", size), png_chunk("tEXt", size), png_chunk("CgBI", size),
        png_chunk("abCd", ""), png_chunk("IHDR", size + "x"), png_chunk("IHDR", "")}) {
    const std::string png = kPngSignature + first + large + kEnd;
    for (const std::string& said : {refusal(png), error_of([&] { read_image_header(png); })})
      EXPECT_EQ(said,
                "the file is damaged: the PNG does not begin with its header, the chunk IHDR");
  }
}

TEST(ImageContainer, TakesNoJpegOfManyScans) {
  const std::string scan = "\xff\xda\0\2\1"s;
  std::string jpeg = "\xff\xd8\xff\xfe\0\2"s;
  for (int i = 0; i < kMostScans; ++i) jpeg += scan;
  EXPECT_EQ(refusal(jpeg + "\xff\xd9"), "no error");
  EXPECT_EQ(refusal(jpeg + scan + "\xff\xd9"), "the JPEG has more than 500 scans");
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

std::string png_of(const std::string& width, const std::string& height) {
  return "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"s + width + height + "\x08\2\0\0\0"s;
}

/// A JPEG's start with two other segments, a comment that holds a frame's marker, and fill bytes.
std::string jpeg_of(char frame, const std::string& height_width) {
  return "\xff\xd8\xff\xe0\0\4ab\xff\xfe\0\5\xff\xc0x\xff\xff"s + frame + "\0\x11\x08"s +
         height_width + "\3"s;
}

std::string webp_of(const std::string& chunk, const std::string& body) {
  return "RIFF\x40\0\0\0WEBP"s + chunk + "\x20\0\0\0"s + body;
}

void expect_header(const std::string& bytes, ImageFormat format, int64_t height, int64_t width) {
  const ImageHeader header = read_image_header(bytes);
  EXPECT_EQ(header.format, format);
  EXPECT_EQ(header.height, height);
  EXPECT_EQ(header.width, width);
}

TEST(ImageHeader, TellsTheFormatByContent) {
  expect_header(png_of("\0\0\1\xf4"s, "\0\0\1\x77"s), ImageFormat::png, 375, 500);
  for (const char frame : {'\xc0', '\xc1', '\xc2', '\xc9'})
    expect_header(jpeg_of(frame, "\1\x77\1\xf4"s), ImageFormat::jpeg, 375, 500);
  expect_header(webp_of("VP8 "s, "\0\0\0\x9d\1\x2a\xf4\1\x77\1"s), ImageFormat::webp, 375, 500);
  // 14 bits of width - 1, then 14 of height - 1: 499 and 374
  expect_header(webp_of("VP8L"s, "\x2f\xf3\x81\x5d\0"s), ImageFormat::webp, 375, 500);
  expect_header(webp_of("VP8X"s, "\0\0\0\0\xf3\1\0\x76\1\0"s), ImageFormat::webp, 375, 500);
}

TEST(ImageHeader, NamesWhatIsNoPicture) {
  EXPECT_EQ(error_of([] { read_image_header(""); }), "the file is empty");
  EXPECT_EQ(error_of([] { read_image_header("hello"); }),
            "the file is no picture; JPEG, PNG and WebP are read");
  EXPECT_EQ(error_of([] { read_image_header("GIF89a"); }),
            "the file is a GIF; JPEG, PNG and WebP are read");
  EXPECT_EQ(error_of([] { read_image_header(webp_of("VP8X"s, "\2\0\0\0\xf3\1\0\x76\1\0"s)); }),
            "the file is an animated WebP; JPEG, PNG and WebP of one picture are read");
}

TEST(ImageHeader, NamesHeadersThatAreDamagedOrCutOff) {
  const std::string files[] = {
      png_of("\0\0\1\xf4"s, "\0\0\1\x77"s), jpeg_of('\xc0', "\1\x77\1\xf4"s),
      webp_of("VP8 "s, "\0\0\0\x9d\1\x2a\xf4\1\x77\1"s), webp_of("VP8L"s, "\x2f\xf3\x81\x5d\0"s)};
  for (const std::string& file : files) {
    const size_t most = file.size() - 8;  // before the size is complete
    for (size_t length = 12; length < most; ++length)
      EXPECT_EQ(error_of([&] { read_image_header(file.substr(0, length)); }),
                concat("the file is cut off: its ", length, " bytes end within the header"));
  }
  EXPECT_EQ(error_of([] { read_image_header("\xff\xd8\xff\xe0\0\4abcd"s); }),
            "the file is cut off: its 10 bytes end within the header")
      << "libjpeg, too, looks for the next segment";
  EXPECT_EQ(error_of([] { read_image_header("\xff\xd8\xff\xda\0\4"s); }),
            "the file is damaged: the JPEG has no frame header before its scans");
  EXPECT_EQ(error_of([] { read_image_header(jpeg_of('\xc0', "\0\0\1\xf4"s)); }),
            "the file is damaged: the picture has 0 x 500 pixels");
  EXPECT_EQ(error_of([] { read_image_header(webp_of("ICCP"s, "0123456789"s)); }),
            "the file is damaged: the WebP begins with no picture");
}

TEST(ImageHeader, RefusesAnAbsurdSize) {
  EXPECT_EQ(error_of([] { read_image_header(png_of("\0\2\0\0"s, "\0\2\0\0"s)); }),
            "the picture has 131072 x 131072 pixels; up to 134217728 are read");
  EXPECT_EQ(error_of([] { read_image_header(png_of("\xff\xff\xff\xff"s, "\xff\xff\xff\xff"s)); }),
            "the picture has 4294967295 x 4294967295 pixels; up to 134217728 are read");
  expect_header(png_of("\0\0\x20\0"s, "\0\0\x40\0"s), ImageFormat::png, 16384, 8192);
}

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
