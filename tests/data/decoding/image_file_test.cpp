#include "data/decoding/image_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tests/support/drawn_pictures.h"
#include "tests/support/error_of.h"
#include "tests/support/opencv_pictures.h"
#include "tests/support/png_files.h"
#include "tests/support/sound_files.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

using namespace std::string_literals;

/// Colours that differ by pixel and channel.
Tensor colourful(int64_t height, int64_t width, int64_t channels) {
  Tensor image({height, width, channels}, DType::u8);
  for (int64_t i = 0; i < image.numel(); ++i)
    image.data<uint8_t>()[i] = static_cast<uint8_t>(37 * i + i / 7);
  return image;
}

/// 16 x 32, red (255, 0, 0) on the left, black on the right.
cv::Mat half_red() {
  cv::Mat mat(16, 32, CV_8UC3, cv::Scalar(0, 0, 0));
  for (int y = 0; y < mat.rows; ++y) {
    for (int x = 0; x < 16; ++x) mat.at<cv::Vec3b>(y, x) = {0, 0, 255};
  }
  return mat;
}

/// A TIFF directory that holds only an orientation.
std::string exif_tiff(char orientation) {
  return "II*\0\x08\0\0\0\1\0\x12\x01\3\0\1\0\0\0"s + orientation + "\0\0\0\0\0\0\0"s;
}

/// The JPEG with an Exif segment of exif_tiff(). Source: Exif 2.3, section 4.6.
std::string with_orientation(const std::string& jpeg, char orientation) {
  const std::string body = "Exif\0\0"s + exif_tiff(orientation);
  return jpeg.substr(0, 2) + "\xff\xe1\0"s + static_cast<char>(body.size() + 2) + body +
         jpeg.substr(2);
}

TEST(ImageFile, ReadsWhatItWrote) {
  const TempDir dir;
  for (const int64_t channels : {1, 3}) {
    const Tensor image = colourful(5, 7, channels);
    write_image(dir / "a.png", image);
    const Tensor back = read_image(dir / "a.png", channels);
    EXPECT_EQ(back.shape(), image.shape());
    EXPECT_EQ(pixels_of(back), pixels_of(image));
  }
}

TEST(ImageFile, MakesGreyOfColourAndColourOfGrey) {
  const TempDir dir;
  const std::string grey = dir.write("grey.png", encoded({1, 2, CV_8UC1, cv::Scalar(90)}, ".png"));
  EXPECT_EQ(pixels_of(read_image(grey, 3)), std::vector<int>(6, 90));
  const std::string red =
      dir.write("red.png", encoded({1, 1, CV_8UC3, cv::Scalar(0, 0, 255)}, ".png"));
  EXPECT_EQ(pixels_of(read_image(red, 3)), std::vector<int>({255, 0, 0}));
  EXPECT_NEAR(pixels_of(read_image(red, 1))[0], 76, 1) << "0.299 of 255";
}

TEST(ImageFile, DropsAlphaAndHalvesSixteenBits) {
  const TempDir dir;
  const cv::Mat clear(1, 1, CV_8UC4, cv::Scalar(30, 20, 10, 0));
  EXPECT_EQ(pixels_of(read_image(dir.write("clear.png", encoded(clear, ".png")), 3)),
            std::vector<int>({10, 20, 30}));
  const cv::Mat deep(1, 1, CV_16UC3, cv::Scalar(0x3000, 0x2000, 0x1000));
  EXPECT_EQ(pixels_of(read_image(dir.write("deep.png", encoded(deep, ".png")), 3)),
            std::vector<int>({0x10, 0x20, 0x30}));
}

TEST(ImageFile, TurnsAsTheCameraWasHeld) {
  const TempDir dir;
  const std::string jpeg = encoded(half_red(), ".jpg");
  const auto red_at = [&](char orientation, int64_t y, int64_t x) {
    const Tensor image = read_image(dir.write("a.jpg", with_orientation(jpeg, orientation)), 3);
    EXPECT_EQ(image.shape(), orientation > 4 ? Shape({32, 16, 3}) : Shape({16, 32, 3}));
    return image.data<uint8_t>()[(y * image.shape()[1] + x) * 3] > 200;
  };
  EXPECT_TRUE(red_at(1, 8, 4));
  EXPECT_TRUE(red_at(3, 8, 28)) << "by half a turn";
  EXPECT_TRUE(red_at(6, 4, 8)) << "to the right: left becomes top";
  EXPECT_FALSE(red_at(6, 28, 8));
  EXPECT_TRUE(red_at(8, 28, 8)) << "to the left";
}

/// The WebP of 32 x 16 pixels, extended by exif_tiff(). Source: "WebP Container Specification".
std::string webp_with_orientation(const std::string& webp, char orientation) {
  const std::string body = exif_tiff(orientation);
  const std::string chunks = "VP8X\x0a\0\0\0\x08\0\0\0\x1f\0\0\x0f\0\0"s + webp.substr(12) +
                             "EXIF" + little_endian(body.size(), 4) + body;
  return "RIFF" + little_endian(4 + chunks.size(), 4) + "WEBP" + chunks;
}

/// OpenCV turns the JPEG, our code the WebP.
TEST(ImageFile, TurnsWebPAsJpeg) {
  const TempDir dir;
  cv::Mat mat(16, 32, CV_8UC1);
  for (int y = 0; y < mat.rows; ++y)
    for (int x = 0; x < mat.cols; ++x) mat.at<uint8_t>(y, x) = static_cast<uint8_t>(7 * x + y);
  const std::string jpeg = encoded(mat, ".jpg"), webp = encoded(mat, ".webp");
  for (char orientation = 1; orientation <= 8; ++orientation) {
    const Tensor expected = read_image(dir.write("a", with_orientation(jpeg, orientation)), 1);
    const Tensor found = read_image(dir.write("b", webp_with_orientation(webp, orientation)), 1);
    ASSERT_EQ(found.shape(), expected.shape()) << int{orientation};
    for (int64_t i = 0; i < found.numel(); ++i)
      ASSERT_NEAR(found.data<uint8_t>()[i], expected.data<uint8_t>()[i], 12)
          << int{orientation} << " at " << i;  // both are lossy; a flip is off by 16 to 217
  }
}

TEST(ImageFile, ReadsWebP) {
  const TempDir dir;
  const std::string bytes = encoded(half_red(), ".webp");
  EXPECT_EQ(read_image(dir.write("a.webp", bytes), 3).shape(), Shape({16, 32, 3}));
  EXPECT_EQ(error_of([&] { read_image(dir.write("b.webp", bytes.substr(0, 40)), 3); }),
            concat(dir / "b.webp", ": the file is cut off: it has 40 bytes, and the WebP ends at ",
                   bytes.size(), " or later"));
}

TEST(ImageFile, RefusesDamagedFilesWithoutWordsOnStderr) {
  const TempDir dir;
  const std::string jpeg = encoded(half_red(), ".jpg");
  std::string png = encoded(half_red(), ".png");
  png[png.size() / 2] ^= 1;
  std::string webp = encoded(half_red(), ".webp");
  webp[14] ^= 1;
  const auto refusal = [&](const std::string& name, const std::string& bytes) {
    const std::string path = dir.write(name, bytes);
    const std::string message = error_of([&] { read_image(path, 3); });
    EXPECT_EQ(message.find(path + ": "), 0u) << message;
    return message.substr(message.find(": ") + 2);
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(refusal("short.jpg", jpeg.substr(0, jpeg.size() / 2)).substr(0, 20),
            "the file is cut off:");
  EXPECT_EQ(refusal("short.png", png.substr(0, 60)).substr(0, 20), "the file is cut off:");
  EXPECT_EQ(refusal("bad.png", png).substr(0, 20), "the file is damaged:");
  EXPECT_EQ(refusal("bad.webp", webp), "the file is damaged: the WebP begins with no picture");
  EXPECT_EQ(refusal("hollow.jpg", "\xff\xd8\xff\xd9"),
            "the file is damaged: the JPEG has no frame header before its scans");
  EXPECT_EQ(refusal("text.jpg", "hello"), "the file is no picture; JPEG, PNG and WebP are read");
  EXPECT_EQ(refusal("empty.png", ""), "the file is no picture; JPEG, PNG and WebP are read");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ImageFile, RefusesWhatIsTooLarge) {
  const TempDir dir;
  const std::string end = png_chunk("IDAT", "") + png_chunk("IEND", "");
  const auto refusal = [&](const std::string& file) {
    const std::string path = dir.write("large", file);
    return error_of([&] { read_image(path, 3); }).substr(path.size());
  };
  EXPECT_EQ(refusal(kPngSignature + png_header(1 << 17, 1 << 17) + end),
            ": the picture has 131072 x 131072 pixels; up to 134217728 are read");
  EXPECT_EQ(refusal(kPngSignature + png_header(16384, 8193) + end),
            ": the picture has 16384 x 8193 pixels; up to 134217728 are read");
  std::string jpeg = encoded(half_red(), ".jpg");
  jpeg.replace(jpeg.find("\xff\xc0") + 5, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(refusal(jpeg), ": the picture has 65535 x 65535 pixels; up to 134217728 are read");
}

TEST(ImageFile, RefusesAPngWithTwoHeaders) {
  const TempDir dir;
  const std::string png = encoded(half_red(), ".png");
  constexpr size_t kBehindHeader = 33;
  for (const size_t place : {kBehindHeader, png.size() - 12}) {  // before and behind the pixels
    std::string two = png;
    const std::string path = dir.write("a.png", two.insert(place, png_header(20000, 20000)));
    EXPECT_EQ(error_of([&] { read_image(path, 3); }),
              concat(path, ": the file is damaged: the PNG has a second header at byte ", place));
  }
}

/// The header's size and the picture's own differ.
TEST(ImageFile, RefusesAWebPLargerThanItsCanvas) {
  const TempDir dir;
  const std::string webp = encoded(half_red(), ".webp");  // 16 x 32 in one chunk
  const auto canvas = [&](uint64_t height, uint64_t width) {
    const std::string body = "WEBPVP8X" + little_endian(10, 4) + little_endian(0, 4) +
                             little_endian(width - 1, 3) + little_endian(height - 1, 3) +
                             webp.substr(12);
    return dir.write("a.webp", "RIFF" + little_endian(body.size(), 4) + body);
  };
  EXPECT_EQ(read_image(canvas(16, 32), 3).shape(), Shape({16, 32, 3}));
  for (const uint64_t height : {1, 8, 32})
    EXPECT_NE(error_of([&] { read_image(canvas(height, 32), 3); }), "no error") << height;
}

/// OpenCV would decode all of these.
TEST(ImageFile, RefusesOtherFormats) {
  const TempDir dir;
  for (const char* ending : {".bmp", ".ppm", ".pgm", ".tiff", ".hdr", ".ras"}) {
    std::vector<uint8_t> bytes;
    cv::Mat mat = half_red();
    if (ending == ".pgm"s) mat = cv::Mat(2, 2, CV_8UC1, cv::Scalar(1));
    if (ending == ".hdr"s) mat = cv::Mat(2, 2, CV_32FC3, cv::Scalar(1, 1, 1));
    if (!cv::imencode(ending, mat, bytes)) continue;
    const std::string path = dir.write("a.png", {bytes.begin(), bytes.end()});
    EXPECT_EQ(error_of([&] { read_image(path, 3); }),
              path + ": the file is no picture; JPEG, PNG and WebP are read")
        << ending;
  }
}

TEST(ImageFile, SaysWhatIsMissing) {
  const TempDir dir;
  EXPECT_EQ(error_of([&] { read_image(dir / "no.png", 3); }),
            (dir / "no.png") + ": there is no such file");
  EXPECT_EQ(error_of([&] { read_image(dir.path(), 3); }),
            dir.path() + ": it is no file, but a directory");
  EXPECT_EQ(error_of([&] { read_image(dir.path(), 2); }),
            "read_image: 2 channels, expected 1 (grey) or 3 (RGB)");
}

TEST(ImageFile, RefusesToWriteWhatIsNoPng) {
  const TempDir dir;
  EXPECT_EQ(error_of([&] { write_image(dir / "a.jpg", colourful(1, 1, 3)); }),
            "write_image: " + (dir / "a.jpg") + ", expected a name that ends in .png");
  EXPECT_EQ(error_of([&] { write_image(dir / "a.png", colourful(1, 1, 2)); }),
            "write_image: " + (dir / "a.png") +
                ": the picture is (1, 1, 2) u8, expected (H, W, 1) or (H, W, 3) u8");
  EXPECT_NE(error_of([&] { write_image("/dev/full/a.png", colourful(1, 1, 3)); }), "no error");
}

}  // namespace
}  // namespace wisp
