// The interface by which a trainer keeps its worker in step with the others; gradient averaging,
// gossip and local SGD implement it. The compute thread makes all calls, except request_stop().
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/io/saved_state.h"
#include "core/train/update_rule.h"
#include "distributed/exchange/outcome.h"
#include "distributed/exchange/step_cost.h"

namespace wisp {

/// The health of compression in a step, as measured by a Probe: over all units that were
/// compressed, for all workers together. NaN if undefined.
struct Health {
  double residual = 0.0;   // norm of the unsent part / norm of the gradients
  double staleness = 0.0;  // mean over elements of the exchanged steps since the result was last
                           // not zero, counted in this process; without units whose method has the
                           // state "tracked" (ef21, ef21_sgdm): their results are running sums
  double cosine = 0.0;     // between the decoded result and the sum of the workers' gradients
};

/// A step that begins, as the trainer knows it.
struct StepBegin {
  int64_t step = 0;    // steps before this one
  double epoch = 0.0;  // epochs done, with fraction; warm-up schedules depend on it
  double lr = 0.0;
};

class Synchronizer {
 public:
  virtual ~Synchronizer() = default;
  /// Begins a step, before any gradient of it exists.
  virtual void begin(const StepBegin& info) = 0;
  /// Records that a micro-batch, not the step's last, has added its gradients to the arena.
  virtual void micro_batch_done() {}
  /// Passes the step's local loss, a scalar on the device, after its last forward.
  virtual void forward_done(const Tensor& loss) = 0;
  /// Waits until all ranks' results are in the gradient arena. Rethrows the exchange's failure.
  virtual Outcome before_update() = 0;
  /// Called after the weights were updated. May wait for other ranks.
  virtual void after_update() = 0;
  /// Number of workers whose gradients before_update() adds up. Each worker divides its own by it.
  virtual int summands() const = 0;
  /// The optimizer's rule for each segment in the current step, valid after before_update().
  virtual std::span<const UpdateRule> rules() const = 0;
  /// Updates of the run so far, including the one that before_update() left in the gradient arena.
  virtual int64_t updates() const = 0;
  /// Cost of the step that was finished last.
  virtual const StepCost& cost() const = 0;
  /// Health of compression in that step, if it was measured.
  virtual std::optional<Health> health() const { return {}; }
  /// Whether every worker has weights of its own (gossip, local SGD).
  virtual bool replicas_differ() const = 0;
  /// The weights to evaluate and export: the arena itself, or the mean over workers in a separate
  /// buffer. Collective, as consensus_distance(); call both between steps.
  virtual Tensor consensus() = 0;
  /// ((1/N) sum of |x_i - mean|^2)^1/2 over the N workers' weights; 0 if they do not differ.
  virtual double consensus_distance() = 0;
  /// The state of the synchronizer and its compressors for a checkpoint, including their part of
  /// the optimizer's arenas. Resize rules may depend on shared state: restore shared state first,
  /// then call this again. Call between steps.
  virtual std::vector<SavedState> state() = 0;
  /// Names the cut of the model that the state depends on; empty if it depends on none.
  virtual std::string layout() const = 0;
  /// Asks all ranks to stop at the end of the first step whose status is not yet sent. Any thread.
  virtual void request_stop() = 0;
  /// Runs `task` on the comm thread, in order with the collectives, and returns when it has run.
  /// Call between steps.
  virtual void between_steps(const std::function<void()>& task) = 0;
};

}  // namespace wisp
