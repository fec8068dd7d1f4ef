// The synchronizer of workers that each update their own weights by their own gradient. Optimizer,
// momentum, clipping and weight decay are local. A WeightExchange keeps the weights together,
// during forward and backward or after the update. The compute thread makes the calls; the object
// owns the comm thread.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/base/work_queue.h"
#include "distributed/exchange/readiness.h"
#include "distributed/exchange/status_slot.h"
#include "distributed/gradient_clip.h"
#include "distributed/own_weights/weight_exchange.h"
#include "distributed/synchronizer_recipe.h"

namespace wisp {

class OwnWeights final : public Synchronizer {
 public:
  /// The references in `site` outlive this object.
  OwnWeights(const SynchronizerSite& site, const OwnWeightsOptions& options,
             std::unique_ptr<WeightExchange> exchange);
  ~OwnWeights() override;

  void begin(const StepBegin& info) override;
  void forward_done(const Tensor& loss) override;
  Outcome before_update() override;
  void after_update() override;
  int summands() const override { return 1; }
  std::span<const UpdateRule> rules() const override { return rules_; }
  int64_t updates() const override { return *applied_.data<int64_t>(); }
  const StepCost& cost() const override { return courier_.cost; }
  bool replicas_differ() const override { return true; }
  Tensor consensus() override;
  double consensus_distance() override;
  std::vector<SavedState> state() override;
  std::string layout() const override { return exchange_->layout(); }
  void request_stop() override { stop_requested_ = true; }
  void between_steps(const std::function<void()>& task) override;

 private:
  void gradient_ready(const Segment& segment) { readiness_.complete(segment, compute_.stream); }
  void post(std::function<void()> task);
  void wait(const char* what);
  void agree_on_status();
  void check_gradient();

  Communicator& communicator_;
  Context& compute_;
  Context& comm_;
  FlatParameters& parameters_;
  Trace& trace_;
  const OwnWeightsOptions options_;
  const Cut cut_;  // a cut without methods, for readiness_
  Readiness readiness_;
  GradientClip clip_;
  StatusSlot status_;
  std::vector<UpdateRule> rules_;
  std::vector<int> all_segments_;
  int64_t bytes_raw_ = 0;
  Tensor applied_;  // (1) i64: updates made
  Tensor mean_;     // mean of the workers' weights

  std::unique_ptr<WeightExchange> exchange_;
  StepInfo info_;  // the step under way
  Tensor loss_;
  Event loss_event_, updated_;
  Outcome outcome_ = Outcome::applied;
  std::atomic<bool> stop_requested_{false};
  Inbox inbox_;
  Courier courier_;
  WorkQueue queue_;  // last: its thread uses everything above
};

}  // namespace wisp
