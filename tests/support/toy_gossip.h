// A toy synchronizer without gradients on the wire: after each update a worker swaps weights with a
// neighbour and goes on with their mean. It shows that the interface carries gossip. The compute
// thread makes the calls; the object owns a comm thread.
#pragma once

#include <atomic>
#include <vector>

#include "core/parameter.h"
#include "core/work_queue.h"
#include "distributed/communicator.h"
#include "distributed/synchronizer.h"

namespace wisp {

class ToyGossip final : public Synchronizer {
 public:
  /// The arguments outlive this object. Weights are f32.
  ToyGossip(Communicator& communicator, Context& context, FlatParameters& parameters);

  /// Applies the exchange of the step before.
  void begin(const StepBegin& info) override;
  void forward_done(const Tensor&) override {}
  Outcome before_update() override;
  /// Posts the exchange with the neighbour of this step.
  void after_update() override;
  std::span<const UpdateRule> rules() const override { return rules_; }
  bool replicas_differ() const override { return true; }
  Tensor consensus() override;
  std::vector<SavedState> state() override { return {}; }
  std::string layout() const override { return {}; }
  void request_stop() override { stop_requested_ = true; }
  void between_steps(const std::function<void()>& task) override;

  /// Even steps pair 0-1, 2-3, …; odd steps 1-2, 3-4, …; who is left over has none (-1).
  static int neighbour(int64_t step, int rank, int workers);

 private:
  void apply_exchange();

  Communicator& communicator_;
  FlatParameters& parameters_;
  std::vector<UpdateRule> rules_;
  Tensor theirs_, mean_;
  int64_t step_ = 0;
  int peer_ = -1;  // of the exchange under way
  std::atomic<bool> stop_requested_{false};
  WorkQueue queue_;  // last: its thread uses everything above
};

}  // namespace wisp
