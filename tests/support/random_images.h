// A data set of noise, for tests that need images of some shape.
#pragma once

#include "core/random.h"
#include "data/images/image_source.h"

namespace wisp {

/// `shape` is (N, H, W, C). The labels run through the classes in turn.
inline ImageSet random_images(Shape shape, int classes = 10) {
  ImageSet set{.name = "random images",
               .images = Tensor(shape, DType::u8),
               .labels = Tensor({shape[0]}, DType::i32),
               .classes = classes};
  const Philox philox(1, 0, 0);
  for (int64_t i = 0; i < shape.numel(); ++i)
    set.images.data<uint8_t>()[i] =
        static_cast<uint8_t>(philox.below(static_cast<uint64_t>(i), 256));
  for (int64_t i = 0; i < shape[0]; ++i)
    set.labels.data<int32_t>()[i] = static_cast<int32_t>(i % classes);
  return set;
}

/// A mean of 120 and a deviation of 60.
inline Normalization random_normalization(int64_t channels = 3) {
  const auto of_each = [channels](double value) {
    return std::vector<double>(static_cast<size_t>(channels), value);
  };
  return {of_each(120.0), of_each(60.0)};
}

}  // namespace wisp
