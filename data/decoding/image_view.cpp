#include "data/decoding/image_view.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"

namespace wisp {
namespace {

constexpr uint64_t kCropIndex = 0x63726f70;  // differs from other draws with the same key
constexpr int kTries = 10;

/// The nearest integer, of two the even one, as in Python.
int64_t rounded(double x) { return std::llrint(x); }

/// Half of the pixels around the centred `kept` of `extent`.
int64_t centred(int64_t extent, int64_t kept) {
  return rounded(static_cast<double>(extent - kept) / 2);
}

/// The place of one of `count` equally likely integers.
int64_t below(uint32_t word, int64_t count) {
  return static_cast<int64_t>(static_cast<uint64_t>(word) * static_cast<uint64_t>(count) >> 32);
}

/// Uniform in [low, high).
double between(uint32_t word, double low, double high) {
  return low + (high - low) * (static_cast<double>(word) * 0x1p-32);
}

/// The largest centred region whose aspect ratio is within the limits.
Region central(int64_t height, int64_t width, const RandomCrop& limits) {
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  Region region{0, 0, height, width};
  if (w / h < limits.least_aspect) {
    region.height = std::clamp<int64_t>(rounded(w / limits.least_aspect), 1, height);
  } else if (w / h > limits.most_aspect) {
    region.width = std::clamp<int64_t>(rounded(h * limits.most_aspect), 1, width);
  }
  region.top = (height - region.height) / 2;
  region.left = (width - region.width) / 2;
  return region;
}

void check_picture(int64_t height, int64_t width) {
  WISP_CHECK(height >= 1 && width >= 1, "view: the picture has ", height, " x ", width,
             " pixels, expected at least 1 x 1");
}

}  // namespace

Tensor cut_region(const void* pixels, int64_t width, const Region& region) {
  constexpr int64_t kPixelBytes = 3;
  Tensor part({region.height, region.width, kPixelBytes}, DType::u8);
  const int64_t row_bytes = region.width * kPixelBytes;
  for (int64_t y = 0; y < region.height; ++y) {
    const int64_t first = (region.top + y) * width + region.left;
    std::memcpy(part.raw() + y * row_bytes, static_cast<const char*>(pixels) + first * kPixelBytes,
                static_cast<size_t>(row_bytes));
  }
  return part;
}

View evaluation_view(int64_t height, int64_t width, int64_t side, int64_t crop) {
  check_picture(height, width);
  WISP_CHECK(side >= crop && crop >= 1, "view: the centre of ", crop,
             " pixels of a shorter side of ", side,
             ", expected at least 1 pixel and at most the side");
  const int64_t shorter = std::min(height, width);
  const auto scaled = [&](int64_t extent) {  // in f64, as Python divides
    return static_cast<int64_t>(static_cast<double>(side * extent) / static_cast<double>(shorter));
  };
  View view{.source = {0, 0, height, width},
            .height = height == shorter ? side : scaled(height),
            .width = width == shorter ? side : scaled(width)};
  view.window = {centred(view.height, crop), centred(view.width, crop), crop, crop};
  return view;
}

View shrunk(const View& view, int64_t height, int64_t width, int64_t shrink) {
  const Region& source = view.source;
  WISP_CHECK(shrink >= 1 && source.height >= shrink && source.width >= shrink,
             "view: ", source.height, " x ", source.width, " pixels of a picture ", shrink,
             " times smaller, expected at least as many on each side");
  const auto place = [&](int64_t at, int64_t extent) {
    return (at + (at == extent ? shrink - 1 : shrink / 2)) / shrink;
  };
  const int64_t top = place(source.top, height), left = place(source.left, width);
  View small = view;
  small.source = {top, left, place(source.bottom(), height) - top,
                  place(source.right(), width) - left};
  return small;
}

View random_view(int64_t height, int64_t width, int64_t size, const RandomCrop& limits,
                 const SampleKey& key) {
  check_picture(height, width);
  WISP_CHECK(0 < limits.least_area && limits.least_area <= limits.most_area &&
                 limits.most_area <= 1 && 0 < limits.least_aspect &&
                 limits.least_aspect <= limits.most_aspect,
             "view: a random crop of an area from ", limits.least_area, " to ", limits.most_area,
             " and an aspect ratio from ", limits.least_aspect, " to ", limits.most_aspect,
             ", expected areas in (0, 1] and ratios above 0, the lower limit first");
  WISP_CHECK(size >= 1, "view: a random crop scaled to ", size, " pixels, expected at least 1");
  const Philox philox = key.philox();
  const double pixels = static_cast<double>(height) * static_cast<double>(width);
  View view{.height = size, .width = size, .window = {0, 0, size, size}};
  for (uint64_t t = 0; t < kTries; ++t) {
    const Philox::Block draw = philox.block(kCropIndex + t);
    const double area = pixels * between(draw.word[0], limits.least_area, limits.most_area);
    const double aspect = std::exp(
        between(draw.word[1], std::log(limits.least_aspect), std::log(limits.most_aspect)));
    const int64_t w = rounded(std::sqrt(area * aspect)), h = rounded(std::sqrt(area / aspect));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    view.source = {below(draw.word[2], height - h + 1), below(draw.word[3], width - w + 1), h, w};
    return view;
  }
  view.source = central(height, width, limits);
  return view;
}

}  // namespace wisp
