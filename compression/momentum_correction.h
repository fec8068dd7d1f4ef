// Momentum correction: each worker applies the optimizer's momentum m to its own gradient g before
// anything is compressed, so that what waits in a residual does so with its momentum:
//   plain:    u <- m u + g;     u is what is compressed
//   Nesterov: u <- m (u + g);   u + g is
// g is of the mean loss, over workers, and weight decay has joined it: g + decay w / workers, local
// and before the momentum, as decaying after the exchange loses accuracy.
// Source: Lin et al. 2018, section 3.2; Nesterov, decay: the authors' code, Paddle's.
#pragma once

#include "compression/compressor.h"

namespace wisp {

/// For kernels, by arena index.
struct MomentumCorrection {
  const float* gradient;
  const float* weight;
  float decay;  // over workers
  float momentum;
  bool nesterov;
  float* u;

  struct Next {
    float u, gradient;  // what takes the gradient's place
  };
  /// With its weight decay.
  WISP_HD float g(int64_t i) const { return gradient[i] + decay * weight[i]; }
  WISP_HD Next next(int64_t i) const {
    const float plain = momentum * u[i] + g(i);
    const float ahead = momentum * (u[i] + g(i));
    return nesterov ? Next{ahead, ahead + g(i)} : Next{plain, plain};
  }
};

/// The optimizer's momentum and weight decay, where each worker applies them itself.
struct LocalMomentum {
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;

  MomentumCorrection correct(const Unit& unit, const Field& field, const StepInfo& info) const;
  /// What makes one worker's u of the optimizer's momentum, which is the mean gradient's; with
  /// Nesterov u is m times that.
  double share(int workers) const { return (nesterov ? momentum : 1.0) / workers; }
};

/// unit.momentum *= factor: what engage() does.
void scale_momentum(Context& context, const Unit& unit, double factor);
/// The reverse, for release(). With a factor of 0 (Nesterov without momentum) it stays 0.
void unscale_momentum(Context& context, const Unit& unit, double factor);

}  // namespace wisp
