// The forecast of a run's exchange, by layer and by phase of a warm-up, from the configuration and
// the list of segments. It runs nothing and takes no memory. Any thread.
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

/// Bytes are per step, on the busiest worker, at the messages' capacities. They leave out the
/// status message, and the rounding of a reduction's shares to whole elements (under one element
/// per worker and reduction). They are means where steps differ or not every step exchanges.
struct LayerPlan {
  std::string name;
  std::string kind;
  Shape shape;
  int64_t numel = 0;
  std::string method;  // empty: dense, without a method
  UnitPath path = UnitPath::compressed;
  bool exact = false;  // its weights travel uncompressed
  int unit = -1;       // layers of one unit are encoded together; -1: no unit
  int bucket = 0;
  std::vector<Collective> rounds;
  /// Bytes of the layer as a unit of its own; of a wider field, its share by elements.
  double bytes_sent = 0.0;
  double bytes_dense = 0.0;  // bytes of a dense all-reduce
  int64_t state_bytes = 0;   // the method's state, per worker
};

struct PhasePlan {
  double epoch = 0.0;                               // begin of the phase
  double ratio = 1.0;                               // ratio of sparse methods
  int units = 0, warm_up = 0, more_than_dense = 0;  // warm_up, more_than_dense: units sent dense
  double bytes_sent = 0.0, bytes_dense = 0.0;
  double bytes_most = 0.0;  // bytes of the busiest step
};

struct ExchangePlan {
  std::vector<LayerPlan> layers;  // in the last phase, in arena order
  std::vector<PhasePlan> phases;
  int64_t state_bytes = 0;
  std::optional<Neighbourhood> neighbourhood;  // if the method gossips
  int64_t period = 1;                          // updates per exchange
  std::vector<std::string> remarks;            // notes for the user, with the numbers
};

/// Throws Error where the run would: for fields that cannot be joined, and for a unit that a method
/// refuses.
ExchangePlan plan_exchange(const Methods& methods, const TrainOptions& options,
                           std::span<const Segment> segments);

}  // namespace wisp
