// Labelled images in memory. A value; any thread may read it.
#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace wisp {

struct ImageSet {
  std::string name;  // for messages: "cifar10 train"
  Tensor images;     // (N, H, W, C) u8
  Tensor labels;     // (N) i32 in [0, classes)
  int classes = 0;

  int64_t count() const { return images.shape()[0]; }
  /// A view of one image, (H, W, C).
  Tensor image(int64_t sample) const;
  /// Throws Error if the shapes do not match, or if a label is no class.
  void check() const;
};

}  // namespace wisp
