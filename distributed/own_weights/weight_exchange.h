// The interface by which workers with their own weights keep them together; gossip and local SGD
// implement it. Belongs to the comm thread, which alone accesses the weights, except in travel().
#pragma once

#include <string>
#include <vector>

#include "compression/compressor.h"
#include "distributed/exchange/courier.h"

namespace wisp {

class WeightExchange {
 public:
  virtual ~WeightExchange() = default;
  /// Called before forward, which runs afterwards. Must not wait for other ranks.
  virtual void begin(const StepInfo&, Courier&) {}
  /// Called during forward and backward, which read the weights. Must not change the weights.
  virtual void travel(const StepInfo&, Courier&) {}
  /// Called after the optimizer's update; the next step waits for it. `info.applied` counts this
  /// update.
  virtual void after_update(const StepInfo&, Courier&) {}

  /// Hash of the exchange's plan, which ranks compare in the status.
  virtual uint64_t hash() const = 0;
  virtual std::vector<SavedState> state() { return {}; }
  /// Names the layout that the state depends on; empty if there is none.
  virtual std::string layout() const { return {}; }
};

}  // namespace wisp
