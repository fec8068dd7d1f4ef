// A probe of how well compression follows the gradient, at regular steps. It measures the size and
// age of residuals, and the angle between the decoded and the true mean. It does not change the
// bits of a run, nor does it block on a device. Belongs to the comm thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/context.h"
#include "core/device_words.h"
#include "core/parameter.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/unit_exchange.h"
#include "distributed/synchronizer.h"

namespace wisp {

class Probe {
 public:
  /// With `every` = 0, the object has no memory and does nothing. The arguments outlive it.
  Probe(Communicator& communicator, Context& context, FlatParameters& parameters,
        UnitExchange& units, int64_t every);

  bool enabled() const { return every_ > 0; }
  /// Whether step `step` is measured; the first step is 0.
  bool due(int64_t step) const { return enabled() && (step + 1) % every_ == 0; }
  /// Keeps a unit's gradient before it is encoded in a measured step; zeros if it is not finite.
  void keep(int unit);
  /// Updates the ages; called after the last decode of every step that is not skipped.
  void count_ages();
  /// Sums the kept gradients over the workers and measures; called after count_ages() in a measured
  /// step. The traffic does not count as a cost of the step. Empty if no unit was compressed.
  std::optional<Health> measure(Courier& courier);

 private:
  /// The arenas with the unsent part of a unit.
  struct Kept {
    Tensor residual;  // may be undefined
    Tensor tracked;   // the receivers' estimate of `target`; may be undefined
    Tensor target;    // undefined: the gradient
  };
  template <class Visit>
  void each_slice(const Visit& visit) const;
  template <class KernelOf, class Visit>
  void each_sum(Courier& courier, const KernelOf& kernel_of, const Visit& visit) const;
  /// Adds two sums of squares over this worker's units: of the unsent part, and of the gradient.
  void add_waiting(Courier& courier, std::span<double> squares) const;
  Health compare(Courier& courier) const;

  Communicator& communicator_;
  Context& context_;
  FlatParameters& parameters_;
  UnitExchange& units_;
  const int64_t every_;
  std::vector<Kept> kept_;  // indexed by unit
  Tensor gradient_;         // arena: this worker's gradient, then the sum
  Tensor age_;              // arena, i32: exchanged steps since the result was last not zero
  DeviceWords sums_;        // (slices, 4) f64: sums of each slice
};

}  // namespace wisp
