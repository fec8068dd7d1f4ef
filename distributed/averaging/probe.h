// A probe of how well compression follows the gradient, every so many steps: what waits in
// residuals, for how long, and where the decoded mean points beside the true one. A run has the
// same bits with and without it. Belongs to the comm thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/context.h"
#include "core/device_words.h"
#include "core/parameter.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/unit_exchange.h"
#include "distributed/health.h"

namespace wisp {

class Probe {
 public:
  /// `every` = 0: no memory, and nothing happens. The arguments outlive this object.
  Probe(Communicator& communicator, Context& context, FlatParameters& parameters,
        UnitExchange& units, int64_t every);

  bool enabled() const { return every_ > 0; }
  /// Whether step `step`, the first being 0, is one of the measured ones.
  bool due(int64_t step) const { return enabled() && (step + 1) % every_ == 0; }
  /// Before a unit is encoded in a measured step: keeps its gradient, zeros if it is not finite.
  void keep(int unit);
  /// After every step's last decode.
  void count_ages();
  /// After count_ages(), in a measured step. Sums what was kept over the workers, which is no cost
  /// of the step; nothing if no unit was compressed.
  std::optional<Health> measure(Courier& courier);

 private:
  /// Where a unit keeps what it has not sent.
  struct Kept {
    Tensor residual;  // or undefined
    Tensor tracked;   // what others know of `target`, or undefined
    Tensor target;    // undefined: of the gradient
  };
  template <class Visit>
  void each_slice(const Visit& visit) const;
  /// What waits, and the gradients beside it, squared and summed over this worker's units.
  void add_waiting(std::span<double> squares) const;
  Health compare() const;

  Communicator& communicator_;
  Context& context_;
  FlatParameters& parameters_;
  UnitExchange& units_;
  const int64_t every_;
  std::vector<Kept> kept_;  // by unit
  Tensor gradient_;         // arena: a worker's own, then the sum
  Tensor age_;              // arena, i32: steps since the result was not zero
  DeviceWords sums_;        // (4) f64: of a slice
};

}  // namespace wisp
