// Momentum correction: each worker applies the optimizer's momentum m to its own gradient g before
// compression, so that a waiting residual includes its momentum.
//   plain:    u <- m u + g;     compress u
//   Nesterov: u <- m (u + g);   compress u + g
// g is the gradient of the mean loss / workers plus weight decay, decay w / workers. Decay is added
// locally and before the momentum, because decay after the exchange loses accuracy. Source: Lin et
// al. 2018, section 3.2; Nesterov and decay: the authors' code, Paddle's code.
#pragma once

#include "compression/compressor.h"

namespace wisp {

/// The update for kernels, indexed by arena element.
struct MomentumCorrection {
  const float* gradient;
  const float* weight;
  float decay;  // weight decay / workers
  float momentum;
  bool nesterov;
  float* u;

  struct Next {
    float u, gradient;  // new momentum; number that replaces the gradient
  };
  /// The gradient with weight decay.
  WISP_HD float g(int64_t i) const { return gradient[i] + decay * weight[i]; }
  WISP_HD Next next(int64_t i) const {
    const float plain = momentum * u[i] + g(i);
    const float ahead = momentum * (u[i] + g(i));
    return nesterov ? Next{ahead, ahead + g(i)} : Next{plain, plain};
  }
};

/// The optimizer's momentum and weight decay, applied by each worker itself.
struct LocalMomentum {
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;

  /// Throws Error for a value out of range.
  void check() const;
  MomentumCorrection correct(const Unit& unit, const Field& field, const StepInfo& info) const;
  /// Factor from the optimizer's momentum, which belongs to the mean gradient, to one worker's u.
  /// With Nesterov, u holds m times the momentum.
  double share(int summands) const { return (nesterov ? momentum : 1.0) / summands; }
};

inline LocalMomentum local_momentum(const CompressorSetup& setup) {
  return {setup.momentum, setup.weight_decay, setup.nesterov};
}

/// unit.momentum *= factor, for engage().
void scale_momentum(Context& context, const Unit& unit, double factor);
/// unit.momentum /= factor, for release(). A factor of 0 (Nesterov without momentum) leaves zeros.
void unscale_momentum(Context& context, const Unit& unit, double factor);

}  // namespace wisp
