#include "data/photos/rand_augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/base/error.h"
#include "data/photos/colour_jitter.h"

namespace wisp {
namespace {

constexpr uint64_t kChangeIndex = 0x72616e64;  // differs from other draws with the same key
constexpr int64_t kMostMagnitude = 30;

using Table = std::array<uint8_t, 256>;

/// A pixel's origin in a picture: (x, y) -> (xx x + xy y + x0, yx x + yy y + y0) of pixel centres.
struct Affine {
  double xx, xy, x0, yx, yy, y0;
};

/// Moves pixels, in 16 bits after the point; the nearest one is taken.
void move_pixels(const Tensor& image, const Affine& map) {
  constexpr int kPoint = 16;
  const int64_t height = image.shape()[0], width = image.shape()[1];
  uint8_t* out = image.data<uint8_t>();
  const std::vector<uint8_t> from(out, out + image.numel());
  const auto fixed = [](double x) { return static_cast<int64_t>(std::floor(x * 65536.0 + 0.5)); };
  const int64_t xx = fixed(map.xx), xy = fixed(map.xy), yx = fixed(map.yx), yy = fixed(map.yy);
  const int64_t x0 = fixed(map.x0 + map.xx * 0.5 + map.xy * 0.5);
  const int64_t y0 = fixed(map.y0 + map.yx * 0.5 + map.yy * 0.5);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, out += 3) {
      const int64_t column = (x0 + xx * x + xy * y) >> kPoint;
      const int64_t row = (y0 + yx * x + yy * y) >> kPoint;
      if (column >= 0 && column < width && row >= 0 && row < height) {
        std::copy_n(from.data() + (row * width + column) * 3, 3, out);
      } else {
        std::fill_n(out, 3, uint8_t{0});
      }
    }
  }
}

void shift(const Tensor& image, double right, double down) {
  move_pixels(image, {1, 0, -std::trunc(right), 0, 1, -std::trunc(down)});
}

/// Rotates about the centre, against the clock.
void rotate(const Tensor& image, double degrees) {
  if (degrees == 0) return;
  const double angle = -degrees * (std::numbers::pi / 180);
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const double x = static_cast<double>(image.shape()[1]) / 2;
  const double y = static_cast<double>(image.shape()[0]) / 2;
  move_pixels(image, {cosine, sine, x - cosine * x - sine * y,  //
                      -sine, cosine, y + sine * x - cosine * y});
}

/// Blends with a smoothed picture: the neighbours count 1, the pixel 5. The border stays.
void change_sharpness(const Tensor& image, float factor) {
  const int64_t height = image.shape()[0], row = image.shape()[1] * 3;
  uint8_t* value = image.data<uint8_t>();
  const std::vector<uint8_t> from(value, value + image.numel());
  for (int64_t y = 1; y + 1 < height; ++y) {
    for (int64_t x = 3; x + 3 < row; ++x) {
      const uint8_t* at = from.data() + y * row + x;
      int sum = 4 * at[0];
      for (const int64_t line : {-row, int64_t{0}, row})
        sum += at[line - 3] + at[line] + at[line + 3];
      value[y * row + x] = blended((2 * sum + 13) / 26, at[0], factor);
    }
  }
}

template <class Value>
Table table_of(Value value) {
  Table table{};
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = static_cast<uint8_t>(value(i));
  return table;
}

/// Replaces the values of a channel, or with `step` 1 of all.
void replace(const Tensor& image, const Table& table, int64_t channel = 0, int64_t step = 1) {
  uint8_t* value = image.data<uint8_t>();
  const int64_t count = image.numel();
  for (int64_t i = channel; i < count; i += step) value[i] = table[value[i]];
}

/// Replaces the values of each channel by a table made of its histogram.
template <class MakeTable>
void replace_by_histogram(const Tensor& image, MakeTable make_table) {
  for (int64_t c = 0; c < 3; ++c) {
    std::array<int64_t, 256> histogram{};
    const uint8_t* value = image.data<uint8_t>();
    const int64_t count = image.numel();
    for (int64_t i = c; i < count; i += 3) ++histogram[value[i]];
    replace(image, make_table(histogram), c, 3);
  }
}

/// Stretches the values to 0 to 255.
Table stretched(const std::array<int64_t, 256>& histogram) {
  const auto counts = [](int64_t count) { return count > 0; };
  const auto first = std::find_if(histogram.begin(), histogram.end(), counts);
  const auto last = std::find_if(histogram.rbegin(), histogram.rend(), counts);
  const auto low = static_cast<int>(first - histogram.begin());
  const auto high = static_cast<int>(histogram.rend() - last) - 1;
  if (high <= low) return table_of([](int i) { return i; });
  const double scale = 255.0 / (high - low), offset = -low * scale;
  return table_of([&](int i) { return std::clamp(static_cast<int>(i * scale + offset), 0, 255); });
}

/// Makes all values about equally frequent.
Table equalised(const std::array<int64_t, 256>& histogram) {
  int64_t pixels = 0, last = 0, values = 0;
  for (const int64_t count : histogram) {
    if (count == 0) continue;
    pixels += count;
    last = count;
    ++values;
  }
  const int64_t step = (pixels - last) / 255;
  if (values <= 1 || step == 0) return table_of([](int i) { return i; });
  int64_t before = step / 2;
  return table_of([&](int i) {
    const int64_t value = std::min<int64_t>(before / step, 255);
    before += histogram[static_cast<size_t>(i)];
    return value;
  });
}

/// Number `magnitude` of 31 from `low` to `high`, in f32 as torch.linspace has them.
double level(float low, float high, int64_t magnitude) {
  const float step = (high - low) / static_cast<float>(kMostMagnitude);
  if (magnitude <= kMostMagnitude / 2) return low + step * static_cast<float>(magnitude);
  return high - step * static_cast<float>(kMostMagnitude - magnitude);
}

}  // namespace

void check(const RandAugment& options) {
  WISP_CHECK(options.changes >= 0, "RandAugment: ", options.changes,
             " changes, expected 0 or more");
  WISP_CHECK(0 <= options.magnitude && options.magnitude <= kMostMagnitude,
             "RandAugment: the magnitude is ", options.magnitude, ", expected 0 to ",
             kMostMagnitude);
}

void change_image(const Tensor& image, int64_t change, int64_t magnitude, int sign) {
  const auto up_to = [&](double most) {
    return sign * level(0, static_cast<float>(most), magnitude);
  };
  const auto factor = [&] { return static_cast<float>(1 + up_to(0.9)); };
  const auto height = static_cast<double>(image.shape()[0]);
  const auto width = static_cast<double>(image.shape()[1]);
  switch (change) {
    case 0:
      return;
    case 1:
      return move_pixels(image, {1, up_to(0.3), 0, 0, 1, 0});
    case 2:
      return move_pixels(image, {1, 0, 0, up_to(0.3), 1, 0});
    case 3:
      return shift(image, up_to(150.0 / 331.0 * width), 0);
    case 4:
      return shift(image, 0, up_to(150.0 / 331.0 * height));
    case 5:
      return rotate(image, up_to(30));
    case 6:
      return change_brightness(image, factor());
    case 7:
      return change_saturation(image, factor());
    case 8:
      return change_contrast(image, factor());
    case 9:
      return change_sharpness(image, factor());
    case 10: {
      const auto dropped = static_cast<int>(std::nearbyint(static_cast<double>(magnitude) / 7.5));
      return replace(image, table_of([&](int i) { return i >> dropped << dropped; }));
    }
    case 11: {
      const double threshold = level(255, 0, magnitude);
      return replace(image, table_of([&](int i) { return i < threshold ? i : 255 - i; }));
    }
    case 12:
      return replace_by_histogram(image, stretched);
    case 13:
      return replace_by_histogram(image, equalised);
    default:
      throw Error(concat("RandAugment: change ", change, ", expected 0 to 13"));
  }
}

void rand_augment(const Tensor& image, const RandAugment& options, const SampleKey& key) {
  check(options);
  check_picture(image, "RandAugment");
  const Philox philox = key.philox();
  for (int64_t i = 0; i < options.changes; ++i) {
    const Philox::Block draw = philox.block(kChangeIndex + static_cast<uint64_t>(i));
    const auto change = static_cast<int64_t>(uint64_t{draw.word[0]} * 14 >> 32);
    change_image(image, change, options.magnitude, (draw.word[1] >> 31) != 0 ? -1 : 1);
  }
}

}  // namespace wisp
