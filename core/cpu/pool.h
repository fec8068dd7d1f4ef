// Max and average pooling of f32 and bf16, N, H, W, C, with sums in f32. OpenMP runs over images,
// and loops are vectorised over channels. One thread computes each image, so the bits do not depend
// on the number of threads. Belongs to its stream's thread.
#pragma once

#include "core/pools.h"

namespace wisp {

class CpuPools final : public Pools {
 public:
  /// `reference` computes f64.
  explicit CpuPools(Pools& reference) : reference_(reference) {}

  void max_pool(const Stream&, const PoolSpec&, const Tensor& x, Tensor& y,
                Tensor& argmax) override;
  void max_pool_dx(const Stream&, const PoolSpec&, const Tensor& dy, const Tensor& argmax,
                   GradSlot dx) override;
  void avg_pool(const Stream&, const PoolSpec&, const Tensor& x, Tensor& y) override;
  void avg_pool_dx(const Stream&, const PoolSpec&, const Tensor& dy, GradSlot dx) override;

 private:
  Pools& reference_;
};

}  // namespace wisp
