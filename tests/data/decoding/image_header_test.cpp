#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"
#include "data/decoding/image_container.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

using namespace std::string_literals;

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

}  // namespace
}  // namespace wisp
