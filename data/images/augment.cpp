#include "data/images/augment.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/random.h"

namespace wisp {
namespace {

constexpr uint64_t kWindowIndex = 0x61756701;  // apart from other draws with the same key

template <class T>
Tensor make_table(const Normalization& normalization) {
  const int64_t channels = std::ssize(normalization.mean);
  Tensor table({channels, 256}, dtype_of<T>::value);
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = normalization.mean[static_cast<size_t>(c)];
    const double deviation = normalization.deviation[static_cast<size_t>(c)];
    for (int64_t value = 0; value < 256; ++value)
      table.data<T>()[c * 256 + value] =
          T(static_cast<Wide<T>>((static_cast<double>(value) - mean) / deviation));
  }
  return table;
}

template <class T>
void write_window(const uint8_t* image, const Shape& shape, const Window& window, const T* table,
                  T* out) {
  const int64_t height = shape[0];
  const int64_t width = shape[1];
  const int64_t channels = shape[2];
  const int64_t step = window.mirror ? -1 : 1;
  for (int64_t y = 0; y < height; ++y) {
    const int64_t row = y + window.down;
    const bool row_inside = row >= 0 && row < height;
    int64_t column = window.right + (window.mirror ? width - 1 : 0);
    for (int64_t x = 0; x < width; ++x, column += step, out += channels) {
      if (row_inside && column >= 0 && column < width) {
        const uint8_t* pixel = image + (row * width + column) * channels;
        for (int64_t c = 0; c < channels; ++c) out[c] = table[c * 256 + pixel[c]];
      } else {
        std::fill_n(out, channels, T{0});
      }
    }
  }
}

}  // namespace

Window random_window(uint64_t seed, int64_t epoch, int64_t sample, int64_t pad) {
  const Philox philox(seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample));
  const Philox::Block block = philox.block(kWindowIndex);
  const auto shift = [pad](uint32_t word) {
    return static_cast<int64_t>(uint64_t{word} * static_cast<uint64_t>(2 * pad + 1) >> 32) - pad;
  };
  return {shift(block.word[0]), shift(block.word[1]), (block.word[2] >> 31) != 0};
}

Normalizer::Normalizer(Normalization normalization, DType dtype)
    : normalization_(std::move(normalization)) {
  const auto& [mean, deviation] = normalization_;
  WISP_CHECK(!mean.empty() && mean.size() == deviation.size(), "normalizer: ", mean.size(),
             " means and ", deviation.size(), " deviations, expected one for each channel");
  for (const double d : deviation)
    WISP_CHECK(d > 0, "normalizer: a channel's deviation is ", d, ", expected more than 0");
  table_ = dispatch_activation(
      dtype, "normalizer", [&](auto zero) { return make_table<decltype(zero)>(normalization_); });
}

void Normalizer::write(const Tensor& image, const Window& window, std::byte* out) const {
  const int64_t channels = table_.shape()[0];
  WISP_CHECK(image.shape().rank() == 3 && image.shape()[2] == channels, "normalizer: an image is ",
             image.shape(), ", expected (H, W, ", channels, ")");
  dispatch_activation(table_.dtype(), "normalizer", [&](auto zero) {
    using T = decltype(zero);
    write_window(image.data<uint8_t>(), image.shape(), window, table_.data<T>(),
                 reinterpret_cast<T*>(out));
  });
}

Tensor Normalizer::picture(const Tensor& image) const {
  const std::vector<double>&mean = normalization_.mean, &deviation = normalization_.deviation;
  const Shape& shape = image.shape();
  Tensor picture({shape[1], shape[2], shape[3]}, DType::u8);
  dispatch_activation(image.dtype(), "normalizer", [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < image.numel(); ++i) {
      const auto c = static_cast<size_t>(i % shape[3]);
      const auto value = static_cast<double>(static_cast<Wide<T>>(image.data<T>()[i]));
      picture.data<uint8_t>()[i] =
          static_cast<uint8_t>(std::clamp(value * deviation[c] + mean[c] + 0.5, 0.0, 255.0));
    }
  });
  return picture;
}

}  // namespace wisp
