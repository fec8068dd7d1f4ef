// Recurrent layers of our own kernels between a library's products, on the device of its stream.
// Belongs to its stream's thread.
#pragma once

#include "core/products.h"
#include "core/rnn.h"

namespace wisp {

class KernelRecurrentLayers final : public RecurrentLayers {
 public:
  /// Temporaries come from `pool`.
  KernelRecurrentLayers(Products& products, MemoryPool& pool) : products_(products), pool_(pool) {}

  int64_t rnn_saved_bytes(const RnnSpec&, DType activations) const override;
  void rnn(const Stream&, const RnnSpec&, const Tensor& x, std::span<const RnnWeights> weights,
           const RnnState& before, Tensor& y, RnnState& after, Tensor& saved) override;
  void rnn_dx(const Stream&, const RnnSpec&, const Tensor& y, const Tensor& dy,
              std::span<const RnnWeights> weights, const RnnState& before, Tensor& saved,
              const GradSlot& dx) override;
  void rnn_dw(const Stream&, const RnnSpec&, const Tensor& x, const Tensor& y,
              const RnnState& before, const Tensor& saved,
              std::span<const RnnGradients> gradients) override;

 private:
  Products& products_;
  MemoryPool& pool_;
};

}  // namespace wisp
