// Max and average pooling as our own kernels, on the device of the stream.
#pragma once

#include "core/pools.h"

namespace wisp {

class KernelPools final : public Pools {
 public:
  void max_pool(const Stream&, const PoolSpec&, const Tensor& x, Tensor& y,
                Tensor& argmax) override;
  void max_pool_dx(const Stream&, const PoolSpec&, const Tensor& dy, const Tensor& argmax,
                   GradSlot dx) override;
  void avg_pool(const Stream&, const PoolSpec&, const Tensor& x, Tensor& y) override;
  void avg_pool_dx(const Stream&, const PoolSpec&, const Tensor& dy, GradSlot dx) override;
};

}  // namespace wisp
