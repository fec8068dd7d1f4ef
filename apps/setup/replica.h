// One worker's copy of the model with all that trains it: contexts, arenas, optimizer,
// synchronizer. The trainer, the benchmarks and the tests run their steps through it. Belongs to
// its worker's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/setup/batch_upload.h"
#include "apps/setup/carried_state.h"
#include "apps/setup/tally.h"
#include "apps/setup/train_options.h"
#include "core/backend.h"
#include "core/train/plateau.h"
#include "data/loader.h"
#include "distributed/agreement.h"
#include "distributed/communicator/communicator.h"
#include "distributed/launch.h"
#include "distributed/stream_watch.h"
#include "distributed/synchronizer.h"
#include "models/model.h"

namespace wisp {

/// What all workers of a process share, those of a device its pool.
struct Shared {
  TrainOptions options;
  Config config;  // bound options included; replicas copy it and bind model and method
  MemoryPool& pool;
  Facts facts;
  int64_t held_out = 0;  // training samples that validate
};

struct StepReport {
  Outcome outcome = Outcome::applied;
  double lr = 0.0;
  double work = 0.0;        // of all workers: images, tokens, frames; from this worker's share
  double loader_ms = 0.0;   // stood still for the next batches
  double compute_ms = 0.0;  // forward, backward and update, without the wait for the others
  StepCost cost;
  std::optional<Health> health;  // if it was measured in this step
};

/// Bytes that workers had to exchange in steps, and the steps they took, each worker's own; beside
/// those what they sent since this replica was made: in metrics, evaluations, checkpoints, and what
/// measures distances and health.
struct RunTraffic {
  double raw = 0.0, encoded = 0.0, sent = 0.0, received = 0.0, dense = 0.0;
  double steps = 0.0;
  double other = 0.0;
};

class Replica {
 public:
  using NextBatch = std::function<Batch()>;
  using BatchAhead = std::function<std::optional<Batch>()>;

  Replica(const Shared& shared, Worker& worker);
  /// Waits for what is under way on the device, which may use memory of all below.
  ~Replica();

  /// One training step at `epoch` (with fraction): forward and backward over the micro-batches that
  /// `next` hands out, exchange, update. Throws Error after options.nonfinite_max skipped steps in
  /// a row. `ahead` may tell what `next` is going to hand out, so that it is on its way to the
  /// device while that computes.
  StepReport step(
      int64_t step, double epoch, const NextBatch& next,
      const BatchAhead& ahead = [] { return std::nullopt; });

  /// Loss and metrics over all workers since the last call. Collective: all workers call it
  /// between steps.
  TallyValues tally() { return total(*tally_); }
  /// The same over the samples of `loader`, in evaluation mode, with_averages(); nothing if `stop`
  /// said so to some worker on the way. Collective.
  std::optional<TallyValues> evaluate(
      Loader& loader, const std::function<bool()>& stop = [] { return false; });
  /// The same with the weights and statistics as they are: Checkpoints::load_evaluated() left them.
  std::optional<TallyValues> evaluate_as_is(
      Loader& loader, const std::function<bool()>& stop = [] { return false; });
  /// Shows the schedule an evaluation that is due by the configuration. All ranks call it with the
  /// same values.
  void observe(const TallyValues& evaluation);
  /// Starts from the weights in a file, averages of them too. Throws Error as read_weights.
  void start_from(const std::string& file, const Facts& facts);
  /// Runs `work` with what is evaluated and exported in the place of weights and statistics: their
  /// averages over time, if there are any; rank 0's statistics; if the workers' weights differ, the
  /// mean over workers of both. Collective.
  void with_averages(const std::function<void()>& work);
  /// Of all steps of the run so far, over all workers. Collective.
  RunTraffic traffic();
  /// Sums of `values` over all workers, in place. Collective.
  void sum_over_workers(std::span<double> values);
  /// What this worker sent in all steps of the run.
  int64_t bytes_sent();
  /// What it sent beside steps since it was made.
  int64_t bytes_other();
  /// What all workers say, by rank; on rank 0 alone, else empty. Collective.
  std::vector<std::string> gather(const std::string& text);
  /// Waits for all workers. Collective.
  void barrier();
  /// Throws Error, naming who has what, unless all workers have the same values. Collective.
  void check_agreement(std::span<const NamedValue> values);

  /// Before state() is saved: every worker gets what the others carry. Collective.
  void share_carried();
  /// All that a checkpoint holds. A rule may depend on shared state: restore that first, then ask
  /// again. Between steps.
  std::vector<SavedState> state();
  /// Names the cut of the model that the state depends on; empty if it depends on none.
  std::string layout() const { return synchronizer_->layout(); }
  /// What else the bits depend on: "onednn 2.6.3 AVX512_CORE, fft kissfft, 2 threads, 1 comm
  /// threads, AMD EPYC 7B13, glibc 2.36".
  std::string numerics() const;

  /// The methods in use, "dgc", "dgc, topk" or "choco, topk"; "none" if all is dense.
  const std::string& methods() const { return methods_; }
  /// Training samples that are held out: the weights have not seen them.
  int64_t held_out() const { return held_out_; }
  /// Whether every worker has weights of its own.
  bool replicas_differ() const { return synchronizer_->replicas_differ(); }
  /// How far the workers' weights are apart; nothing if they are the same. Collective.
  std::optional<double> consensus_distance();
  Model& model() { return *model_; }
  const FlatParameters& parameters() const { return *parameters_; }
  /// Shows each local gradient, over all workers, when it is complete and before it is exchanged.
  void watch_gradients(std::function<void(const Segment&)> watch) {
    parameters_->before_grad_ready(std::move(watch));
  }
  Synchronizer& synchronizer() { return *synchronizer_; }
  Context& context() { return compute_; }
  Trace& trace() { return trace_; }
  int rank() const { return worker_.rank; }
  int workers() const { return options_.workers; }

 private:
  void forward_backward(const NextBatch& next, const BatchAhead& ahead, StepReport& report);
  void start_upload(const BatchAhead& ahead);
  double share_of(const Batch& batch) const;
  void count(const StepCost& cost);
  void count_compute(StreamWatch::Mark begin, const char* what);
  void share_buffers();
  void swap_weights(const Tensor& others);
  double run_evaluation(Loader& loader, const std::function<bool()>& stop);
  void save_buffers();
  void restore_buffers();
  TallyValues total(Tally& tally);
  template <class Work>
  void without_turn(const Work& work);

  /// One that moves memory of the worker's device.
  Communicator& communicator() { return of_device_ ? *of_device_ : worker_.communicator; }

  const TrainOptions& options_;
  Worker& worker_;
  const int64_t held_out_;
  Trace trace_;
  Stream compute_stream_;
  Stream comm_stream_;
  std::unique_ptr<Backend> compute_backend_;
  std::unique_ptr<Backend> comm_backend_;
  Context compute_;
  Context comm_;
  BatchUpload upload_;
  StreamWatch compute_watch_{compute_stream_};
  double compute_ms_ = 0.0;                  // that no step has counted yet
  std::unique_ptr<Communicator> of_device_;  // which the worker's does not know; null: it does
  std::unique_ptr<Model> model_;
  std::unique_ptr<FlatParameters> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Ema> ema_;
  Plateau plateau_;
  std::optional<Tally> tally_;  // of training
  std::optional<Tally> evaluation_;
  std::optional<CarriedState> carried_;  // in training
  Tensor saved_buffers_;                 // all of them
  std::string methods_;
  Tensor skipped_in_a_row_;    // (1) i64
  Tensor traffic_;             // i64, the fields of RunTraffic without the last: this worker's
  int64_t sent_before_ = 0;    // by the communicator, when this replica was made
  int64_t sent_in_steps_ = 0;  // since then
  std::unique_ptr<Synchronizer> synchronizer_;  // last: its thread uses the rest
};

}  // namespace wisp
