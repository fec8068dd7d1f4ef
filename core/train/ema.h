// Exponential moving averages of a worker's trained weights and buffers, for evaluation. Used by
// its compute thread.
#pragma once

#include <vector>

#include "core/io/config.h"
#include "core/io/saved_state.h"
#include "core/parameter.h"

namespace wisp {

struct EmaOptions {
  double decay = 0.0;  // 0: no averages

  /// Binds key "ema.decay" and checks it.
  static EmaOptions bind(Config& config);
};

class Ema {
 public:
  /// The averages start at the present values. `parameters` outlives this.
  Ema(const Context& context, FlatParameters& parameters, EmaOptions options);

  /// Starts again at the present values: somebody replaced the weights.
  void restart(const Context& context);

  /// After update `number` (from 1): each average a of x moves to d a + (1 - d) x, where
  /// d = min(decay, (1 + number) / (10 + number)), so that the initial values are soon forgotten.
  /// Running statistics are averaged like weights, as in timm's ModelEma: those of the weights of
  /// the moment would not fit the averages. Source: Polyak & Juditsky 1992; the rise of d as in
  /// TensorFlow's ExponentialMovingAverage.
  void update(const Context& context, int64_t number);

  /// Exchanges weights and buffers with their averages. Twice leaves every bit as it was.
  void exchange(const Context& context);

  /// What a checkpoint holds: the averages of the weights, shared as these are, "ema/NAME", and of
  /// this rank's buffers, "ema_buffer/NAME".
  std::vector<SavedState> state(Sharing of_weights) const;

 private:
  template <class Visit>
  void each(const Visit& visit) const;

  FlatParameters& parameters_;
  EmaOptions options_;
  Tensor weights_;               // in the index space of the arenas
  std::vector<Tensor> buffers_;  // in the order of FlatParameters::buffers()
};

}  // namespace wisp
