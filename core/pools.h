// Max and average pooling of images, N, H, W, C.
#pragma once

#include <cstdint>

namespace wisp {

struct PoolSpec {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int64_t kernel = 1, stride = 1, pad = 0;

  int64_t out_height() const { return (height + 2 * pad - kernel) / stride + 1; }
  int64_t out_width() const { return (width + 2 * pad - kernel) / stride + 1; }
};

}  // namespace wisp
