// Pictures drawn by formulas, (H, W, 3) u8, for tests, and the content of a picture.
// scripts/check_images.py draws the same ones.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace wisp {

/// `value`(y, x, c) is truncated to 8 bits.
template <class Value>
Tensor drawn_picture(int64_t height, int64_t width, Value value) {
  Tensor image({height, width, 3}, DType::u8);
  uint8_t* out = image.data<uint8_t>();
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < 3; ++c) *out++ = static_cast<uint8_t>(value(y, x, c));
  return image;
}

inline Tensor noise_picture(int64_t height, int64_t width) {
  return drawn_picture(height, width, [](int64_t y, int64_t x, int64_t c) {
    return static_cast<uint32_t>(x * 7919 + y * 104729 + c * 1299709) * 2654435761u >> 24;
  });
}

/// Black and white, so that filters overshoot.
inline Tensor checks_picture(int64_t height, int64_t width) {
  return drawn_picture(
      height, width, [](int64_t y, int64_t x, int64_t c) { return (x / 3 + y / 2 + c) % 2 * 255; });
}

inline std::vector<int> pixels_of(const Tensor& image) {
  return {image.data<uint8_t>(), image.data<uint8_t>() + image.numel()};
}

inline std::string bytes_of(const Tensor& image) {
  return {reinterpret_cast<const char*>(image.raw()), static_cast<size_t>(image.bytes())};
}

}  // namespace wisp
