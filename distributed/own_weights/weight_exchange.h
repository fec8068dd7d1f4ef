// How workers that update weights of their own keep them together: gossip and local SGD implement
// it. Belongs to the comm thread, which has the weights to itself but in travel().
#pragma once

#include <string>
#include <vector>

#include "compression/compressor.h"
#include "distributed/exchange/courier.h"

namespace wisp {

class WeightExchange {
 public:
  virtual ~WeightExchange() = default;
  /// Before forward, which waits for it; not for other ranks.
  virtual void begin(const StepInfo&, Courier&) {}
  /// Beside forward and backward, which read the weights: they stay as they are.
  virtual void travel(const StepInfo&, Courier&) {}
  /// After the optimizer's update; the next step waits for it. `info.applied` counts this update.
  virtual void after_update(const StepInfo&, Courier&) {}

  /// Of what the ranks are about to exchange: the same on all of them.
  virtual uint64_t hash() const = 0;
  virtual std::vector<SavedState> state() { return {}; }
  /// Names what the state depends on; empty if it depends on nothing.
  virtual std::string layout() const { return {}; }
};

}  // namespace wisp
