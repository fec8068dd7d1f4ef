#include "data/decoding/photo.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "data/decoding/image_codec.h"
#include "tests/support/drawn_pictures.h"
#include "tests/support/error_of.h"
#include "tests/support/opencv_pictures.h"

namespace wisp {
namespace {

using namespace std::string_literals;

/// 20 x 31 pixels, smooth and of all colours, BGR.
cv::Mat colours() {
  cv::Mat mat(20, 31, CV_8UC3);
  for (int y = 0; y < mat.rows; ++y)
    for (int x = 0; x < mat.cols; ++x)
      mat.at<cv::Vec3b>(y, x) = {static_cast<uint8_t>(8 * x), static_cast<uint8_t>(12 * y),
                                 static_cast<uint8_t>(4 * (x + y))};
  return mat;
}

Tensor whole_of(const std::string& bytes) {
  const Photo photo(bytes);
  const DecodedImage image = photo.decode({0, 0, photo.height(), photo.width()});
  EXPECT_EQ(image.complaint, "");
  return image.pixels;
}

TEST(Photo, ReadsTheSizeAndARegionOfEachFormat) {
  for (const char* ending : {".jpg", ".png", ".webp"}) {
    const std::string bytes = encoded(colours(), ending);
    const Photo photo(bytes);
    EXPECT_EQ(photo.height(), 20) << ending;
    EXPECT_EQ(photo.width(), 31) << ending;
    const Tensor whole = whole_of(bytes);
    EXPECT_EQ(pixels_of(whole), pixels_of(decode_image(bytes, 3, Orientation::ignored)))
        << ending << ": as OpenCV decodes it";
    const Tensor part = photo.decode({3, 5, 11, 20}).pixels;
    EXPECT_EQ(pixels_of(part), pixels_of(drawn_picture(
                                   11, 20,
                                   [&](int64_t y, int64_t x, int64_t c) {
                                     return whole.data<uint8_t>()[((3 + y) * 31 + 5 + x) * 3 + c];
                                   })))
        << ending;
  }
}

TEST(Photo, ShrinksJpegsAlone) {
  const std::string jpeg = encoded(colours(), ".jpg"), png = encoded(colours(), ".png");
  EXPECT_EQ(Photo(jpeg).decode({0, 0, 10, 16}, 2).pixels.shape(), Shape({10, 16, 3}));
  EXPECT_EQ(error_of([&] {
              Photo(png).decode({0, 0, 10, 16}, 2);
            }),
            "photo: only JPEGs can be shrunk, and only by libjpeg-turbo");
}

TEST(Photo, GreyAlphaAndSixteenBitsBecomeRgb) {
  EXPECT_EQ(pixels_of(whole_of(encoded({1, 1, CV_8UC1, cv::Scalar(90)}, ".png"))),
            std::vector<int>({90, 90, 90}));
  EXPECT_EQ(pixels_of(whole_of(encoded({1, 1, CV_8UC4, cv::Scalar(30, 20, 10, 0)}, ".png"))),
            std::vector<int>({10, 20, 30}));
  EXPECT_EQ(
      pixels_of(whole_of(encoded({1, 1, CV_16UC3, cv::Scalar(0x30ff, 0x20ff, 0x10ff)}, ".png"))),
      std::vector<int>({0x10, 0x20, 0x30}));
}

// A camera held upright: orientation 6. read_image() turns it.
TEST(Photo, IgnoresTheExifOrientation) {
  const std::string jpeg = encoded(colours(), ".jpg");
  const std::string body = "Exif\0\0II*\0\x08\0\0\0\1\0\x12\x01\3\0\1\0\0\0\6\0\0\0\0\0\0\0"s;
  const std::string turned = jpeg.substr(0, 2) + "\xff\xe1\0"s +
                             static_cast<char>(body.size() + 2) + body + jpeg.substr(2);
  EXPECT_EQ(decode_image(turned, 3, Orientation::applied).shape(), Shape({31, 20, 3}));
  EXPECT_EQ(pixels_of(whole_of(turned)), pixels_of(whole_of(jpeg)));
  EXPECT_EQ(pixels_of(decode_image(turned, 3, Orientation::ignored)), pixels_of(whole_of(jpeg)));
}

TEST(Photo, NamesDamage) {
  const auto refusal = [](const std::string& bytes) {
    return error_of([&] { Photo(bytes).decode({0, 0, 20, 31}); });
  };
  std::string png = encoded(colours(), ".png");
  png[png.size() / 2] ^= 1;
  EXPECT_EQ(refusal(png).substr(0, 20), "the file is damaged:");
  const std::string webp = encoded(colours(), ".webp");
  EXPECT_EQ(refusal(webp.substr(0, 60)).substr(0, 20), "the file is cut off:");
  const std::string jpeg = encoded(colours(), ".jpg");
  // the frame's number of components
  std::string wrong = jpeg;
  wrong[jpeg.find("\xff\xc0") + 9] = 9;
  EXPECT_EQ(refusal(wrong), "libjpeg: Bogus marker length");
  // libjpeg goes past the end of a file that is cut off, and says so
  const std::string half = jpeg.substr(0, jpeg.size() - 100);
  EXPECT_EQ(Photo(half).decode({0, 0, 20, 31}).complaint, "Premature end of JPEG file");
}

TEST(Photo, RefusesRegionsOutsideOfThePicture) {
  const std::string png = encoded(colours(), ".png");
  EXPECT_EQ(
      error_of([&] {
        Photo(png).decode({1, 0, 20, 31});
      }),
      "photo: a region of 20 x 31 pixels at (1, 0), expected one within the picture's 20 x 31");
}

}  // namespace
}  // namespace wisp
