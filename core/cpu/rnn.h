// Recurrent layers on packed products (core/cpu/packed_product.h), for activations of f32 and bf16.
// Belongs to its stream's thread.
#pragma once

#include <span>

#include "core/rnn.h"
#include "core/workspace.h"

namespace wisp {

class CpuRecurrentLayers final : public RecurrentLayers {
 public:
  /// `reference` computes f64, and bf16 where missing_for(bf16). Temporaries are in `workspace`.
  CpuRecurrentLayers(RecurrentLayers& reference, Workspace& workspace)
      : reference_(reference), workspace_(workspace) {}

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
  RecurrentLayers& reference_;
  Workspace& workspace_;
};

}  // namespace wisp
