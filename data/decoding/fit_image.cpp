#include "data/decoding/fit_image.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/error.h"

namespace wisp {
namespace {

/// A range of pixels along one axis.
struct Range {
  int64_t begin = 0;
  int64_t length = 0;
};

/// The weighted mean that makes one pixel of the copy, along one axis.
struct Mean {
  int64_t begin = 0;
  std::vector<float> weights;  // weights of the pixels from `begin` on; their sum is 1
};

/// The centred part of `extent`, at most all, whose ratio to `other` is `wanted` / `other_wanted`.
Range centred(int64_t extent, int64_t other, int64_t wanted, int64_t other_wanted) {
  const double length =
      static_cast<double>(other) * static_cast<double>(wanted) / static_cast<double>(other_wanted);
  const int64_t whole = std::max<int64_t>(1, std::llround(length));
  if (whole >= extent) return {0, extent};
  return {(extent - whole) / 2, whole};
}

/// The mean over the interval [begin, end) of pixels.
Mean area(double begin, double end, const Range& range) {
  const auto first = static_cast<int64_t>(begin);
  const int64_t last = std::min(range.length, static_cast<int64_t>(std::ceil(end)));
  Mean mean{.begin = range.begin + first, .weights = {}};
  for (int64_t i = first; i < last; ++i) {
    const double covered =
        std::min(end, static_cast<double>(i + 1)) - std::max(begin, static_cast<double>(i));
    mean.weights.push_back(static_cast<float>(covered / (end - begin)));
  }
  return mean;
}

/// The mean of the two pixels whose centres are around `place`; beyond the edge, the edge pixel.
Mean between(double place, const Range& range) {
  const double inside = std::clamp(place, 0.5, static_cast<double>(range.length) - 0.5) - 0.5;
  const auto first = static_cast<int64_t>(inside);
  const auto part = static_cast<float>(inside - static_cast<double>(first));
  if (part == 0) return {range.begin + first, {1}};
  return {range.begin + first, {1 - part, part}};
}

std::vector<Mean> means(const Range& range, int64_t count) {
  const double scale = static_cast<double>(range.length) / static_cast<double>(count);
  std::vector<Mean> all;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<double>(i);
    all.push_back(scale >= 1 ? area(at * scale, (at + 1) * scale, range)
                             : between((at + 0.5) * scale, range));
  }
  return all;
}

/// Writes the weighted mean of whole rows of `numel` values.
void mean_of_rows(const uint8_t* image, const Mean& mean, int64_t numel, float* out) {
  std::fill_n(out, numel, 0.0f);
  const uint8_t* row = image + mean.begin * numel;
  for (const float weight : mean.weights) {
    for (int64_t i = 0; i < numel; ++i) out[i] += weight * static_cast<float>(row[i]);
    row += numel;
  }
}

void mean_of_pixels(const float* row, const Mean& mean, int64_t channels, uint8_t* out) {
  for (int64_t c = 0; c < channels; ++c) {
    const float* value = row + mean.begin * channels + c;
    float sum = 0.5f;  // rounds to the nearest
    for (const float weight : mean.weights) {
      sum += weight * *value;
      value += channels;
    }
    out[c] = static_cast<uint8_t>(std::min(sum, 255.0f));
  }
}

}  // namespace

Tensor fit_image(const Tensor& image, int64_t height, int64_t width) {
  const Shape& shape = image.shape();
  WISP_CHECK(image.dtype() == DType::u8 && shape.rank() == 3 && shape.numel() > 0,
             "fit_image: the picture is ", shape, " ", name_of(image.dtype()),
             ", expected (H, W, C) u8");
  WISP_CHECK(height > 0 && width > 0, "fit_image: to ", height, " x ", width,
             ", expected at least 1 x 1");
  if (shape[0] == height && shape[1] == width) return image;
  const int64_t channels = shape[2];
  const int64_t row_numel = shape[1] * channels;
  const std::vector<Mean> down = means(centred(shape[0], shape[1], height, width), height);
  const std::vector<Mean> across = means(centred(shape[1], shape[0], width, height), width);
  Tensor copy({height, width, channels}, DType::u8);
  auto* out = copy.data<uint8_t>();
  std::vector<float> row(static_cast<size_t>(row_numel));
  for (const Mean& rows : down) {
    mean_of_rows(image.data<uint8_t>(), rows, row_numel, row.data());
    for (const Mean& pixels : across) {
      mean_of_pixels(row.data(), pixels, channels, out);
      out += channels;
    }
  }
  return copy;
}

}  // namespace wisp
