// The forecast of a run's exchange, by layer and by phase of a warm-up. It follows from the
// configuration and the list of segments; nothing has run, and no memory is taken.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/setup/methods.h"
#include "apps/setup/train_options.h"
#include "core/parameter.h"
#include "distributed/exchange/step_plan.h"

namespace wisp {

/// Bytes are of a step, on the worker that sends most, at the messages' capacities; without the
/// status, and without what rounding a reduction's shares to whole elements adds, fewer than one
/// for each worker and reduction. If steps differ, or not every step exchanges, they are a mean.
struct LayerPlan {
  std::string name;
  std::string kind;
  Shape shape;
  int64_t numel = 0;
  std::string method;  // empty: none, dense
  UnitPath path = UnitPath::compressed;
  bool exact = false;  // weights travel, as they are
  int unit = -1;       // layers of one unit are encoded together; -1: no unit
  int bucket = 0;
  std::vector<Collective> rounds;
  double bytes_sent = 0.0;  // of the unit's, what the layer would send alone; its share by elements
                            // in a scope wider than it
  double bytes_dense = 0.0;  // what a dense all-reduce of it sends
  int64_t state_bytes = 0;   // the method's, on each worker
};

struct PhasePlan {
  double epoch = 0.0;                               // where it begins
  double ratio = 1.0;                               // of sparse methods
  int units = 0, warm_up = 0, more_than_dense = 0;  // the last two are dense
  double bytes_sent = 0.0, bytes_dense = 0.0;
  double bytes_most = 0.0;  // of the step that sends most
};

struct ExchangePlan {
  std::vector<LayerPlan> layers;  // in the last phase, in the order of the arena
  std::vector<PhasePlan> phases;
  int64_t state_bytes = 0;
  std::optional<Neighbourhood> neighbourhood;  // of gossip
  int64_t period = 1;                          // updates from one exchange to the next
  std::vector<std::string> remarks;  // what a person should know before the run, with the numbers
};

/// Throws Error where the run would: for fields that cannot be joined, and from a method that
/// refuses a unit.
ExchangePlan plan_exchange(const Methods& methods, const TrainOptions& options,
                           std::span<const Segment> segments);

}  // namespace wisp
