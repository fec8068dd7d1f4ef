// The synchronizer of workers that each update their own weights by their own gradient: optimizer,
// clipping and weight decay are local. A WeightExchange keeps the weights together, beside forward
// and backward or after the update. The compute thread calls; the object owns the comm thread.
#pragma once

#include <memory>
#include <vector>

#include "distributed/exchange/comm_thread.h"
#include "distributed/exchange/readiness.h"
#include "distributed/gradient_clip.h"
#include "distributed/synchronizer_recipe.h"

namespace wisp {

/// The way in which workers with their own weights keep them together; gossip and local SGD
/// implement it. Belongs to the comm thread, which alone accesses the weights, except in travel().
class WeightExchange {
 public:
  virtual ~WeightExchange() = default;
  /// Called before forward, which runs afterwards. Must not wait for other ranks.
  virtual void begin(const StepInfo&, Courier&) {}
  /// Called during forward and backward, which read the weights. Must not change the weights.
  virtual void travel(const StepInfo&, Courier&) {}
  /// Called after the optimizer's update, which `info.applied` counts; the next step waits for it.
  virtual void after_update(const StepInfo&, Courier&) {}

  /// Hash of the exchange's plan, which ranks compare in the status.
  virtual uint64_t hash() const = 0;
  virtual std::vector<SavedState> state() { return {}; }
  /// Names the layout that the state depends on; empty if there is none.
  virtual std::string layout() const { return {}; }
};

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
  const StepCost& cost() const override { return comm_thread_.courier().cost; }
  bool replicas_differ() const override { return true; }
  Tensor consensus() override;
  double consensus_distance() override;
  std::vector<SavedState> state() override;
  std::string layout() const override { return exchange_->layout(); }
  void request_stop() override { comm_thread_.request_stop(); }
  void between_steps(const std::function<void()>& task) override {
    comm_thread_.between_steps(task);
  }

 private:
  void wait(const char* what);
  void post_travel();
  void post_status();
  void check_gradient();

  const SynchronizerSite site_;
  const OwnWeightsOptions options_;
  const Cut cut_;  // one bucket of all segments
  Readiness readiness_;
  GradientClip clip_;
  std::vector<UpdateRule> rules_;
  Tensor applied_;  // (1) i64: updates made
  Tensor mean_;     // mean of the workers' weights

  std::unique_ptr<WeightExchange> exchange_;
  StepInfo info_;  // the step under way
  Tensor loss_;
  Event loss_event_, updated_;
  Outcome outcome_ = Outcome::applied;
  CommThread comm_thread_;  // last: its tasks use everything above
};

}  // namespace wisp
