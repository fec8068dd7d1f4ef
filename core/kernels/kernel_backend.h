// A backend whose norms, pools and recurrent layers are our own kernels, on the device of its
// stream. A library does the rest: products, convolutions, transforms. Belongs to its stream's
// thread.
#pragma once

#include "core/backend.h"

namespace wisp {

class KernelBackend : public Backend {
 public:
  /// Temporaries come from `pool`, for work on the stream with that id.
  KernelBackend(MemoryPool& pool, int64_t stream_id) : pool_(pool), stream_id_(stream_id) {}

  void max_pool(const Stream&, const PoolSpec&, const Tensor& x, Tensor& y, Tensor& argmax) final;
  void max_pool_dx(const Stream&, const PoolSpec&, const Tensor& dy, const Tensor& argmax,
                   GradSlot dx) final;
  void avg_pool(const Stream&, const PoolSpec&, const Tensor& x, Tensor& y) final;
  void avg_pool_dx(const Stream&, const PoolSpec&, const Tensor& dy, GradSlot dx) final;

  int64_t relu_mask_bytes(const BatchNormSpec&, DType activations) const final;
  void batch_norm(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& gamma,
                  const Tensor& beta, const Tensor* residual, double momentum, Tensor& running_mean,
                  Tensor& running_var, Tensor& mean, Tensor& inv_std, Tensor& y,
                  Tensor& mask) final;
  void batch_norm_eval(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& gamma,
                       const Tensor& beta, const Tensor* residual, const Tensor& running_mean,
                       const Tensor& running_var, Tensor& y) final;
  void batch_norm_dx(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& passed,
                     const Tensor& dy, const Tensor& gamma, const Tensor& mean,
                     const Tensor& inv_std, GradSlot* dx, GradSlot* d_residual, GradSlot* d_gamma,
                     GradSlot* d_beta) final;

  int64_t rnn_saved_bytes(const RnnSpec&, DType activations) const final;
  void rnn(const Stream&, const RnnSpec&, const Tensor& x, std::span<const RnnWeights> weights,
           const RnnState& before, Tensor& y, RnnState& after, Tensor& saved) final;
  void rnn_dx(const Stream&, const RnnSpec&, const Tensor& y, const Tensor& dy,
              std::span<const RnnWeights> weights, const RnnState& before, Tensor& saved,
              GradSlot* dx) final;
  void rnn_dw(const Stream&, const RnnSpec&, const Tensor& x, const Tensor& y,
              const RnnState& before, const Tensor& saved,
              std::span<const RnnGradients> gradients) final;

 protected:
  /// Uninitialised memory that returns to the pool with its last owner.
  Tensor temporary(Shape shape, DType dtype) const { return {shape, dtype, pool_, stream_id_}; }

 private:
  MemoryPool& pool_;
  const int64_t stream_id_;
};

}  // namespace wisp
