// One worker's copy of the model with everything that trains it: contexts, arenas, optimizer and
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
#include "core/copy.h"
#include "core/device/stream_watch.h"
#include "core/train/plateau.h"
#include "data/loader.h"
#include "distributed/agreement.h"
#include "distributed/communicator/communicator.h"
#include "distributed/launch.h"
#include "distributed/synchronizer.h"
#include "models/model.h"

namespace wisp {

class Prepared;

/// The error of a run whose loss is no finite number, step after step.
class Diverged : public Error {
 public:
  using Error::Error;
};

/// The outcome, costs and times of one step on this worker.
struct StepReport {
  Outcome outcome = Outcome::applied;
  double lr = 0.0;
  double work = 0.0;        // images, tokens or frames of all workers, estimated from this one
  double loader_ms = 0.0;   // wait for the next batches
  double compute_ms = 0.0;  // forward, backward and update, without waits for others
  StepCost cost;
  std::optional<Health> health;  // if this step measured it
};

/// Traffic of a run, summed over workers. `steps` counts the steps of each worker; other fields are
/// bytes. `other` is sent outside steps since this replica was made: for metrics, evaluations,
/// checkpoints, distances and health; `distance` is the part sent to measure how far the workers
/// are apart. All else is of the steps of the whole run.
struct RunTraffic {
  double raw = 0.0, encoded = 0.0, sent = 0.0, received = 0.0, dense = 0.0;
  double steps = 0.0;
  double other = 0.0, distance = 0.0;
};

class Replica {
 public:
  using NextBatch = std::function<Batch()>;
  using BatchAhead = std::function<std::optional<Batch>()>;
  using WatchResult = std::function<void(const Step&, const Batch&)>;

  /// `pool` is of the worker's device. The arguments outlive this object.
  Replica(const Prepared& run, MemoryPool& pool, Worker& worker);
  /// Waits for work on the device, which may use memory of the members.
  ~Replica();

  /// One training step at `epoch` (with fraction): forward and backward over the micro-batches from
  /// `next`, exchange, update. `ahead` may return the batch that `next` will give later, to upload
  /// it while the device computes. Throws Diverged after options.nonfinite_max skipped steps in a
  /// row.
  StepReport step(
      int64_t step, double epoch, const NextBatch& next,
      const BatchAhead& ahead = [] { return std::nullopt; });

  /// Loss and metrics over all workers since the last call. Collective: all workers call it between
  /// steps.
  TallyValues tally() { return total(*tally_); }
  /// Evaluates the samples of `loader` inside with_averages(). Returns loss and metrics, or nothing
  /// if `stop` returned true on some worker. `watch` sees each batch with its result, in the
  /// context's thread. Collective.
  std::optional<TallyValues> evaluate(
      Loader& loader, const std::function<bool()>& stop = [] { return false; },
      const WatchResult& watch = [](const Step&, const Batch&) {});
  /// Like evaluate(), with the weights and statistics as Checkpoints::load_evaluated() left them.
  std::optional<TallyValues> evaluate_as_is(
      Loader& loader, const std::function<bool()>& stop = [] { return false; },
      const WatchResult& watch = [](const Step&, const Batch&) {});
  /// Tells the schedule the values of an evaluation that train.eval_every asks for. All ranks pass
  /// the same values.
  void observe(const TallyValues& evaluation);
  /// Loads weights from a file, and sets their averages to them. Throws Error as read_weights.
  void start_from(const std::string& file, const Facts& facts);
  /// Runs `work` with the weights and statistics that are evaluated and exported: averages over
  /// time if there are any, and rank 0's statistics. If the workers' weights differ, both are means
  /// over workers. Collective.
  void with_averages(const std::function<void()>& work);
  /// Traffic so far. Collective.
  RunTraffic traffic();
  /// Sums of `values` over all workers, in place. Collective.
  void sum_over_workers(std::span<double> values);
  /// What rank 0 answers, on all workers. Collective.
  bool rank_0_says(const std::function<bool()>& answer);
  /// Bytes this worker sent in all steps of the run.
  int64_t bytes_sent() const { return traffic_.data<int64_t>()[2]; }
  /// The texts of all workers by rank, on rank 0; empty elsewhere. Collective.
  std::vector<std::string> gather(const std::string& text);
  /// Waits for all workers. Collective.
  void barrier();
  /// Throws Error, which names each rank's value, unless all workers have the same. Collective.
  void check_agreement(const NamedValue& value);

  /// Gives every worker the carried state of all. Call before state() is saved. Collective.
  void share_carried();
  /// All state that a checkpoint holds. A rule may depend on shared state: restore that first, then
  /// call this again. Call between steps.
  std::vector<SavedState> state();
  /// A name for the cut of the model that the state depends on; empty if it depends on none.
  std::string layout() const { return synchronizer_->layout(); }
  /// Libraries, threads and machine behind the bits: "onednn 2.6.3 AVX512_CORE, fft kissfft, 2
  /// threads, 1 comm threads, AMD EPYC 7B13, glibc 2.36".
  std::string numerics() const;

  /// The methods in use: "dgc", "dgc, topk" or "choco, topk"; "none" if all is dense.
  const std::string& methods() const { return methods_; }
  /// The number of steps, up to the last one, that were skipped because a loss was not finite.
  int64_t skipped_in_a_row() const { return *skipped_in_a_row_.data<int64_t>(); }
  /// Number of training samples that are held out of training.
  int64_t held_out() const { return held_out_; }
  /// Whether every worker has weights of its own.
  bool replicas_differ() const { return synchronizer_->replicas_differ(); }
  /// The distance between the workers' weights; nothing if they are the same. Collective.
  std::optional<double> consensus_distance();
  Model& model() { return *model_; }
  const FlatParameters& parameters() const { return *parameters_; }
  /// Calls `watch` with each local gradient, this worker's share of the mean, before its exchange.
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
  void save_buffers() { copy(compute_.stream, parameters_->buffer_arena(), saved_buffers_); }
  void restore_buffers() { copy(compute_.stream, saved_buffers_, parameters_->buffer_arena()); }
  TallyValues total(Tally& tally);
  void without_turn(const std::function<void()>& work);
  void exchange(const std::function<void()>& work);

  /// The communicator that moves memory of the worker's device.
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
  double compute_ms_ = 0.0;                  // compute time that no step has counted yet
  std::unique_ptr<Communicator> of_device_;  // moves device memory; null: the worker's does
  std::unique_ptr<Model> model_;
  std::unique_ptr<FlatParameters> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Ema> ema_;
  Plateau plateau_;
  std::optional<Tally> tally_;  // over training steps
  std::optional<Tally> evaluation_;
  std::optional<CarriedState> carried_;  // between training steps
  Tensor saved_buffers_;                 // copy of the buffer arena
  std::string methods_;
  Tensor skipped_in_a_row_;                     // (1) i64
  Tensor traffic_;                              // i64, this worker's RunTraffic without `other`
  int64_t sent_before_ = 0;                     // bytes by the communicator before this replica
  int64_t sent_in_steps_ = 0;                   // bytes since then, in steps
  int64_t sent_for_distances_ = 0;              // bytes since then, in consensus_distance()
  std::unique_ptr<Synchronizer> synchronizer_;  // last: its thread uses the rest
};

}  // namespace wisp
