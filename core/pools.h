// Max and average pooling of images, N, H, W, C, and the backend's object for it (core/backend.h).
#pragma once

#include "core/autograd.h"

namespace wisp {

struct PoolSpec {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int64_t kernel = 1, stride = 1, pad = 0;

  int64_t out_height() const { return (height + 2 * pad - kernel) / stride + 1; }
  int64_t out_width() const { return (width + 2 * pad - kernel) / stride + 1; }
};

class Pools {
 public:
  virtual ~Pools() = default;
  /// `argmax` (i32, y's shape) gets the flat position in x of each maximum. Padding never wins.
  virtual void max_pool(const Stream&, const PoolSpec&, const Tensor& x, Tensor& y,
                        Tensor& argmax) = 0;
  virtual void max_pool_dx(const Stream&, const PoolSpec&, const Tensor& dy, const Tensor& argmax,
                           GradSlot dx) = 0;
  /// Mean over the window. Padding counts as zeros, so the divisor is kernel².
  virtual void avg_pool(const Stream&, const PoolSpec&, const Tensor& x, Tensor& y) = 0;
  virtual void avg_pool_dx(const Stream&, const PoolSpec&, const Tensor& dy, GradSlot dx) = 0;
};

}  // namespace wisp
