// What a trainer calls to keep its worker in step with the others. Gradient averaging, gossip and
// local SGD implement it. All calls come from the compute thread.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/io/saved_state.h"
#include "core/train/update_rule.h"
#include "distributed/accounting.h"
#include "distributed/health.h"

namespace wisp {

/// What became of a step, on all ranks: its update is to be applied; it was skipped; or its update
/// is to be applied and the run to end, because some rank asked to stop.
enum class Outcome { applied, skipped, stop };

struct StepBegin {
  int64_t step = 0;    // batches seen
  double epoch = 0.0;  // with fraction: warm-up schedules run on it
  double lr = 0.0;
};

class Synchronizer {
 public:
  virtual ~Synchronizer() = default;
  /// A step begins; no gradient of it exists yet.
  virtual void begin(const StepBegin& info) = 0;
  /// A micro-batch that is not the step's last has added its gradients to the arena.
  virtual void micro_batch_done() {}
  /// The local loss is known (device scalar in `loss`); the status travels.
  virtual void forward_done(const Tensor& loss) = 0;
  /// Waits until the results of all ranks are in the gradient arena; rethrows what failed.
  virtual Outcome before_update() = 0;
  /// The weights have been updated. May wait for other ranks.
  virtual void after_update() = 0;
  /// How many workers' gradients before_update() adds up: each divides its own by that.
  virtual int summands() const = 0;
  /// How the optimizer must treat each segment in the step whose results are there.
  virtual std::span<const UpdateRule> rules() const = 0;
  /// Updates of the run so far, the one that before_update() left in the gradient arena included.
  virtual int64_t updates() const = 0;
  /// Cost of the step that was finished last.
  virtual const StepCost& cost() const = 0;
  /// How compression fared in that step, if it was measured.
  virtual std::optional<Health> health() const { return {}; }
  virtual bool replicas_differ() const = 0;
  /// The weights to evaluate and export: the arena itself, or the mean over workers in a buffer of
  /// its own. Collective, as the distance: between steps.
  virtual Tensor consensus() = 0;
  /// ((1/N) sum of |x_i - mean|^2)^1/2 over the N workers' weights; 0 if they do not differ.
  virtual double consensus_distance() = 0;
  /// What a checkpoint must hold of the synchronizer and its compressors, their part of the
  /// optimizer's arenas included. A rule may depend on shared state: restore that first, then ask
  /// again. Between steps.
  virtual std::vector<SavedState> state() = 0;
  /// Names the cut of the model that state depends on; empty if it depends on none.
  virtual std::string layout() const = 0;
  /// Asks all ranks to stop at the end of the step whose status is still to be sent. Any thread.
  virtual void request_stop() = 0;
  /// Runs `task` on the comm thread, in order with the collectives, between steps; returns when it
  /// has run.
  virtual void between_steps(const std::function<void()>& task) = 0;
};

}  // namespace wisp
