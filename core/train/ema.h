// Exponential moving averages of a worker's trained weights and buffers, for evaluation. For the
// worker's compute thread.
#pragma once

#include <vector>

#include "core/io/config.h"
#include "core/io/saved_state.h"
#include "core/parameter.h"

namespace wisp {

struct EmaOptions {
  double decay = 0.0;  // 0: no averages

  /// Binds and checks the key "ema.decay".
  static EmaOptions bind(Config& config);
};

class Ema {
 public:
  /// The averages start at the current values. `parameters` must outlive this object.
  Ema(const Context& context, FlatParameters& parameters, EmaOptions options);

  /// Sets the averages to the current values, after the weights were replaced.
  void restart(const Context& context);

  /// Moves each average a of x to d a + (1 - d) x after update `number` (from 1). d = min(decay, (1
  /// + number) / (10 + number)), so that the initial values are soon forgotten. Running statistics
  /// are averaged like weights, as in timm's ModelEma, because current statistics would not fit
  /// averaged weights. Source: Polyak & Juditsky 1992; the rise of d is that of TensorFlow's
  /// ExponentialMovingAverage.
  void update(const Context& context, int64_t number);

  /// Exchanges weights and buffers with their averages. A second call restores every bit.
  void exchange(const Context& context);

  /// State for checkpoints: the averages of the weights, "ema/NAME", with the sharing `of_weights`,
  /// and of this rank's buffers, "ema_buffer/NAME".
  std::vector<SavedState> state(Sharing of_weights) const;

 private:
  template <class Visit>
  void each(const Visit& visit) const;

  FlatParameters& parameters_;
  EmaOptions options_;
  Tensor weights_;               // averages, in the index space of the arenas
  std::vector<Tensor> buffers_;  // averages, in the order of FlatParameters::buffers()
};

}  // namespace wisp
