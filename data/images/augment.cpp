#include "data/images/augment.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace wisp {
namespace {

template <class T>
Tensor make_table(const Normalization& normalization, std::span<const double> light) {
  const int64_t channels = std::ssize(normalization.mean);
  Tensor table({channels, 256}, dtype_of<T>::value);
  for (int64_t c = 0; c < channels; ++c) {
    double mean = normalization.mean[static_cast<size_t>(c)];
    if (!light.empty()) mean -= light[static_cast<size_t>(c)];
    const double deviation = normalization.deviation[static_cast<size_t>(c)];
    for (int64_t value = 0; value < 256; ++value)
      table.data<T>()[c * 256 + value] =
          T(static_cast<Wide<T>>((static_cast<double>(value) - mean) / deviation));
  }
  return table;
}

template <class T>
void write_window(const uint8_t* image, const PixelFormat<T>& format, const Window& window,
                  T* out) {
  for (int64_t y = 0; y < format.height; ++y) {
    const auto row = format.row(image, window, y);
    for (int64_t x = 0; x < format.width; ++x, out += format.channels) format.write(row, x, out);
  }
}

}  // namespace

Normalizer::Normalizer(Normalization normalization, DType dtype)
    : normalization_(std::move(normalization)) {
  const auto& [mean, deviation] = normalization_;
  WISP_CHECK(!mean.empty() && mean.size() == deviation.size(), "normalizer: ", mean.size(),
             " means and ", deviation.size(), " deviations, expected one for each channel");
  for (const double d : deviation)
    WISP_CHECK(d > 0, "normalizer: a channel's deviation is ", d, ", expected more than 0");
  table_ = dispatch_activation(dtype, "normalizer", [&](auto zero) {
    return make_table<decltype(zero)>(normalization_, {});
  });
}

void Normalizer::write(const Tensor& image, const Window& window, std::byte* out,
                       std::span<const double> light) const {
  const int64_t channels = table_.shape()[0];
  WISP_CHECK(image.shape().rank() == 3 && image.shape()[2] == channels, "normalizer: an image is ",
             image.shape(), ", expected (H, W, ", channels, ")");
  WISP_CHECK(light.empty() || std::ssize(light) == channels, "normalizer: light for ", light.size(),
             " channels, expected ", channels);
  dispatch_activation(table_.dtype(), "normalizer", [&](auto zero) {
    using T = decltype(zero);
    const Shape& shape = image.shape();
    const Tensor table = light.empty() ? table_ : make_table<T>(normalization_, light);
    write_window<T>(image.data<uint8_t>(), {shape[0], shape[1], channels, table.data<T>()}, window,
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
