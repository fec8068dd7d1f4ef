// The synchronizer of data-parallel SGD. In every step it replaces each worker's gradients by their
// mean over all workers. A comm thread exchanges them unit by unit and bucket by bucket, while
// backward is still running. The compute thread makes the calls; the object owns the comm thread.
#pragma once

#include <string>
#include <vector>

#include "core/device/stream_watch.h"
#include "core/io/trace.h"
#include "core/parameter.h"
#include "distributed/averaging/gradient_squares.h"
#include "distributed/averaging/probe.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/comm_thread.h"
#include "distributed/exchange/cut.h"
#include "distributed/exchange/readiness.h"
#include "distributed/exchange/step_cost.h"
#include "distributed/exchange/unit_exchange.h"
#include "distributed/gradient_clip.h"
#include "distributed/method.h"
#include "distributed/synchronizer.h"

namespace wisp {

struct AveragingOptions {
  BucketOptions buckets;
  ClipOptions clip;
  bool overlap = true;      // false: encoding begins after backward
  bool guard = true;        // keep a unit dense while it would send more than dense
  int64_t probe_every = 0;  // steps between two Health measurements; 0: never
  std::function<double(double epoch)> ratio;  // kept / total for sparse methods; empty: 1
};

/// Whether each worker's own gradient is clipped before encoding, instead of the mean. Throws Error
/// for ClipWhere::mean if a method is Clipping::local_only.
bool clips_locally(const ClipOptions& clip, std::span<const Method> methods);

class GradientAveraging final : public Synchronizer {
 public:
  /// `compute` is the context of the gradients in `parameters`; `comm` is the comm thread's own
  /// context. `method_of[id]` is each segment's index into `methods`, or kDense. All references
  /// outlive this object.
  GradientAveraging(Communicator& communicator, Context& compute, Context& comm,
                    FlatParameters& parameters, std::vector<Method> methods,
                    std::vector<int> method_of, AveragingOptions options, Trace& trace);
  ~GradientAveraging() override;

  void begin(const StepBegin& info) override;
  void micro_batch_done() override { squares_.add_micro_batch(); }
  void forward_done(const Tensor& loss) override;
  Outcome before_update() override;
  void after_update() override {}
  std::span<const UpdateRule> rules() const override { return units_.step_plan().rules(); }
  int summands() const override { return communicator_.size(); }
  int64_t updates() const override { return *counters_.data<int64_t>(); }
  const StepCost& cost() const override { return comm_thread_.courier().cost; }
  std::optional<Health> health() const override { return health_; }
  bool replicas_differ() const override { return false; }
  Tensor consensus() override { return parameters_.weight(); }
  double consensus_distance() override { return 0.0; }
  std::vector<SavedState> state() override;
  /// The cut's hash if compressors keep state of whole units; else empty.
  std::string layout() const override;
  void request_stop() override { comm_thread_.request_stop(); }
  void between_steps(const std::function<void()>& task) override;

  /// Declares that the parameters are a part of this worker's gradient `whole`, from the next step
  /// on. Local clipping uses its norm. The norm of the whole mean is unknown, so the mean can be
  /// clipped per layer only. Call between steps.
  void part_of(const WholeGradient& whole);

  const Cut& cut() const { return units_.cut(); }
  /// Number of units that were compressed in the last step.
  int compressed_units() const { return units_.step_plan().compressed_units(); }

 private:
  // compute thread
  void gradient_ready(const Segment& segment);

  // comm thread
  void exchange();
  void plan_step();
  void measure(int item);
  void prepare(int item);

  Communicator& communicator_;
  Context& compute_;
  Context& comm_;
  FlatParameters& parameters_;
  std::vector<Method> methods_;
  const AveragingOptions options_;
  Trace& trace_;
  UnitExchange units_;
  GradientClip local_;  // clips this worker's gradient, on the comm thread
  GradientClip mean_;   // clips the mean over all workers, on the compute thread

  GradientSquares squares_;
  Readiness readiness_;

  // compute thread
  StepBegin begin_;
  Tensor loss_;
  Event loss_event_;
  bool posted_ = false;  // until the exchange has ended
  StreamWatch compute_watch_;
  double wait_ms_ = 0.0, clip_ms_ = 0.0;  // not yet counted in a step
  std::vector<int> all_segments_;

  // Comm thread: the step under way.
  Probe probe_;
  std::optional<Health> health_;
  Event exchanged_;  // recorded when the arena holds the result
  Tensor counters_;  // (1) i64: updates applied
  Tensor last_lr_;   // (1) f64: learning rate of the last update
  Outcome outcome_ = Outcome::applied;

  CommThread comm_thread_;  // last: its tasks use everything above
};

}  // namespace wisp
