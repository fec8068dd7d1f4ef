#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "core/random.h"
#include "data/decoding/image_container.h"
#include "data/decoding/jpeg_codec.h"
#include "tests/support/address_limit.h"
#include "tests/support/drawn_pictures.h"
#include "tests/support/error_of.h"
#include "tests/support/jpeg_files.h"

namespace wisp {
namespace {

Tensor whole_of(const std::string& jpeg, int64_t height, int64_t width) {
  const DecodedImage image = decode_jpeg(jpeg, {0, 0, height, width});
  EXPECT_EQ(image.complaint, "");
  return image.pixels;
}

/// Whether the part of `whole` at `region` has the pixels of `part`.
bool equals(const Tensor& whole, const Region& region, const Tensor& part) {
  if (part.shape() != Shape({region.height, region.width, 3})) return false;
  for (int64_t y = 0; y < region.height; ++y) {
    const uint8_t* row =
        whole.data<uint8_t>() + ((region.top + y) * whole.shape()[1] + region.left) * 3;
    if (std::memcmp(row, part.data<uint8_t>() + y * region.width * 3,
                    static_cast<size_t>(region.width * 3)) != 0)
      return false;
  }
  return true;
}

/// A region drawn at random; every third one is small, and every third one touches an end.
Region random_region(int64_t height, int64_t width, uint64_t draw) {
  const Philox philox(1, 0, draw);
  const auto up_to = [&](uint64_t index, int64_t bound) {
    return static_cast<int64_t>(philox.below(index, static_cast<uint32_t>(bound)));
  };
  const bool small = draw % 3 == 1;
  Region region;
  region.height = 1 + up_to(0, small ? std::min<int64_t>(height, 9) : height);
  region.width = 1 + up_to(1, small ? std::min<int64_t>(width, 9) : width);
  region.top = draw % 6 == 2 ? height - region.height : up_to(2, height - region.height + 1);
  region.left = draw % 6 == 5 ? width - region.width : up_to(3, width - region.width + 1);
  return region;
}

TEST(JpegCodec, ARegionHasTheBitsOfTheWholePicture) {
  const struct {
    int across, down;
  } kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}};
  const Shape kSizes[] = {{65, 83}, {128, 160}, {17, 300}, {200, 5}, {1, 1}};
  uint64_t draw = 0;
  for (const auto& sampling : kSamplings) {
    for (const Shape& size : kSizes) {
      for (const auto coding : {JpegOptions::baseline, JpegOptions::progressive,
                                JpegOptions::separate_scans, JpegOptions::arithmetic}) {
        const std::string jpeg =
            jpeg_of(noise_picture(size[0], size[1]), {.across = sampling.across,
                                                      .down = sampling.down,
                                                      .coding = coding,
                                                      .restart = size[0] == 65 ? 3 : 0});
        const Tensor whole = whole_of(jpeg, size[0], size[1]);
        for (int i = 0; i < 12; ++i) {
          const Region region = random_region(size[0], size[1], draw++);
          ASSERT_TRUE(equals(whole, region, decode_jpeg(jpeg, region).pixels))
              << sampling.across << " x " << sampling.down << ", coding " << coding << ", " << size
              << ": (" << region.top << ", " << region.left << "), " << region.height << " x "
              << region.width;
        }
      }
    }
  }
}

TEST(JpegCodec, ARegionOfASmallerPictureHasItsBits) {
  for (const int across : {1, 2}) {
    const std::string jpeg = jpeg_of(noise_picture(65, 83), {.across = across, .down = across});
    for (const int64_t shrink : {2, 4, 8}) {
      const int64_t height = (65 + shrink - 1) / shrink, width = (83 + shrink - 1) / shrink;
      const Tensor whole = decode_jpeg(jpeg, {0, 0, height, width}, shrink).pixels;
      for (uint64_t draw = 0; draw < 24; ++draw) {
        const Region region = random_region(height, width, draw);
        ASSERT_TRUE(equals(whole, region, decode_jpeg(jpeg, region, shrink).pixels))
            << shrink << ", draw " << draw;
      }
      EXPECT_NE(error_of([&] {
                  decode_jpeg(jpeg, {0, 0, height + 1, width}, shrink);
                }),
                "no error");
    }
  }
  EXPECT_EQ(error_of([] {
              decode_jpeg("", {0, 0, 1, 1}, 3);
            }),
            "decode_jpeg: shrink is 3, expected 1, 2, 4 or 8");
}

TEST(JpegCodec, DecodesWhatWasEncoded) {
  // a smooth picture: JPEG keeps it within a few levels
  const Tensor image = drawn_picture(
      40, 56, [](int64_t y, int64_t x, int64_t c) { return 30 + 2 * x + 2 * y + 10 * c; });
  for (const J_COLOR_SPACE stored : {JCS_YCbCr, JCS_RGB}) {
    const Tensor back = whole_of(jpeg_of(image, {.stored = stored}), 40, 56);
    for (int64_t i = 0; i < image.numel(); ++i)
      ASSERT_NEAR(back.data<uint8_t>()[i], image.data<uint8_t>()[i], 8) << stored << " at " << i;
  }
}

TEST(JpegCodec, GreyBecomesRgb) {
  Tensor grey({9, 11, 1}, DType::u8);
  for (int64_t i = 0; i < 99; ++i) grey.data<uint8_t>()[i] = static_cast<uint8_t>(100 + i);
  const Tensor image =
      whole_of(jpeg_of(grey, {.stored = JCS_GRAYSCALE, .across = 1, .down = 1}), 9, 11);
  for (int64_t i = 0; i < 99; ++i) {
    const uint8_t* pixel = image.data<uint8_t>() + 3 * i;
    EXPECT_NEAR(pixel[0], grey.data<uint8_t>()[i], 3);
    EXPECT_EQ(pixel[1], pixel[0]);
    EXPECT_EQ(pixel[2], pixel[0]);
  }
}

// As Adobe stores ink: 255 is none. Expected values by Pillow 11.3.0's convert("RGB") of such
// files.
TEST(JpegCodec, CmykBecomesRgb) {
  const uint8_t kInk[][4] = {{255, 255, 255, 255},
                             {0, 255, 255, 255},
                             {255, 0, 255, 200},
                             {255, 255, 255, 0},
                             {128, 64, 32, 128}};
  const uint8_t kRgb[][3] = {
      {255, 255, 255}, {0, 255, 255}, {200, 0, 200}, {0, 0, 0}, {64, 32, 16}};
  for (size_t i = 0; i < std::size(kInk); ++i) {
    Tensor even({8, 8, 4}, DType::u8);
    for (int64_t j = 0; j < even.numel(); ++j)
      even.data<uint8_t>()[j] = kInk[i][static_cast<size_t>(j % 4)];
    for (const J_COLOR_SPACE stored : {JCS_CMYK, JCS_YCCK}) {
      const Tensor image = whole_of(jpeg_of(even, {.stored = stored}), 8, 8);
      for (int64_t j = 0; j < image.numel(); ++j)
        ASSERT_NEAR(image.data<uint8_t>()[j], kRgb[i][j % 3], 2) << i << ", " << stored;
    }
  }
}

TEST(JpegCodec, NamesDamageThatItGoesPast) {
  const std::string jpeg = jpeg_of(noise_picture(64, 64));
  const std::string half = jpeg.substr(0, jpeg.size() / 2);
  EXPECT_EQ(decode_jpeg(half, {0, 0, 64, 64}).complaint, "Premature end of JPEG file");
  EXPECT_EQ(decode_jpeg(half, {0, 0, 8, 64}).complaint, "") << "the damage is below";
  std::string wrong = jpeg;
  wrong.replace(jpeg.size() / 2, 2, "\xff\xd9");
  EXPECT_NE(decode_jpeg(wrong, {0, 0, 64, 64}).complaint, "");
}

// As Pillow reads them, without a word.
TEST(JpegCodec, OddFilesAreNotDamaged) {
  const std::string jpeg = jpeg_of(noise_picture(16, 16));
  const Tensor expected = whole_of(jpeg, 16, 16);
  std::string later = jpeg;  // a JFIF of version 2
  const size_t version = jpeg.find("JFIF") + 5;
  ASSERT_EQ(later[version], 1);
  later[version] = 2;
  std::string more = jpeg;
  more.insert(jpeg.find("\xff\xdb"), "between segments");
  for (const std::string& odd : {later, more, jpeg + "behind the end"}) {
    const Tensor image = whole_of(odd, 16, 16);
    EXPECT_EQ(std::memcmp(image.raw(), expected.raw(), static_cast<size_t>(image.bytes())), 0);
    EXPECT_EQ(read_image_header(odd).width, 16);
  }
}

// 40 kB that would take a minute or more, if the picture were large.
TEST(JpegCodec, RefusesThousandsOfScans) {
  const std::string jpeg = jpeg_of(noise_picture(16, 16), {.coding = JpegOptions::progressive});
  const size_t last = jpeg.rfind("\xff\xda"), end = jpeg.size() - 2;
  const auto with_scans = [&](int more) {
    std::string result = jpeg.substr(0, end);
    for (int i = 0; i < more; ++i) result += jpeg.substr(last, end - last);
    return result + jpeg.substr(end);
  };
  const Region all{0, 0, 16, 16};
  EXPECT_EQ(error_of([&] { decode_jpeg(with_scans(400), all); }), "no error");
  EXPECT_EQ(error_of([&] { decode_jpeg(with_scans(600), all); }),
            "libjpeg: the JPEG has more than 500 scans");
}

TEST(JpegCodec, BytesThatAreLeftWithinAScanAreDamage) {
  std::string jpeg = jpeg_of(noise_picture(32, 32), {.restart = 1});
  const size_t restart = jpeg.find("\xff\xd0");
  ASSERT_NE(restart, jpeg.npos);
  jpeg.insert(restart, "more than libjpeg reads ahead");
  EXPECT_NE(decode_jpeg(jpeg, {0, 0, 32, 32}).complaint.find("extraneous bytes"),
            std::string::npos);
}

TEST(JpegCodec, RefusesWhatLibjpegRefuses) {
  const std::string jpeg = jpeg_of(noise_picture(16, 16));
  const Region all{0, 0, 16, 16};
  EXPECT_EQ(error_of([&] { decode_jpeg("", all); }), "libjpeg: Empty input file");
  EXPECT_EQ(error_of([&] { decode_jpeg("hello", all); }),
            "libjpeg: Not a JPEG file: starts with 0x68 0x65");
  EXPECT_EQ(error_of([&] { decode_jpeg(jpeg.substr(0, 40), all); }).substr(0, 9), "libjpeg: ");
  // every cut and every changed byte gives a picture, perhaps with a complaint, or an Error
  for (size_t at = 0; at < jpeg.size(); ++at) {
    std::string changed = jpeg;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    error_of([&] { decode_jpeg(changed, all); });
    error_of([&] { decode_jpeg(jpeg.substr(0, at), all); });
  }
}

TEST(JpegCodec, RefusesRegionsOutsideOfThePicture) {
  const std::string jpeg = jpeg_of(noise_picture(16, 20));
  for (const Region& region :
       {Region{0, 0, 17, 20}, Region{0, 1, 16, 20}, Region{-1, 0, 2, 2}, Region{0, 0, 0, 5}})
    EXPECT_NE(error_of([&] { decode_jpeg(jpeg, region); }), "no error");
  EXPECT_EQ(error_of([&] {
              decode_jpeg(jpeg, {3, 4, 16, 20});
            }),
            "region of 16 x 20 pixels at (3, 4), expected one within the picture's 16 x 20");
}

// A small file that promises 65500 x 65500 pixels is refused before it takes memory.
TEST(JpegCodec, RefusesAnAbsurdSizeBeforeItTakesMemory) {
  std::string jpeg = jpeg_of(noise_picture(16, 16));
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (const size_t at : {frame + 5, frame + 7}) jpeg.replace(at, 2, "\xff\xdc");
  const AddressLimit limit(64 << 20);
  EXPECT_EQ(error_of([&] {
              decode_jpeg(jpeg, {0, 0, 1, 1});
            }),
            concat("the picture has 65500 x 65500 pixels; up to ", kMostPixels, " are read"));
  EXPECT_EQ(error_of([&] { read_image_header(jpeg); }),
            concat("the picture has 65500 x 65500 pixels; up to ", kMostPixels, " are read"));
}

}  // namespace
}  // namespace wisp
