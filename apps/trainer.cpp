#include "apps/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "apps/checkpoints.h"
#include "apps/prepared.h"
#include "apps/replica.h"
#include "apps/reporter.h"
#include "core/clock.h"
#include "core/error.h"

namespace wisp {
namespace {

/// What the steps of this process cost this worker.
struct Costs {
  double compute_ms = 0.0;
  StepCost sum;
  int64_t steps = 0;

  void add(const StepReport& report) {
    compute_ms += report.compute_ms;
    sum += report.cost;
    ++steps;
  }
};

/// One worker's run.
class Training {
 public:
  Training(const Prepared& run, MemoryPool& pool, const RunDirectory& directory, Worker& worker,
           Reporter* reporter)
      : options_(run.options()),
        directory_(directory),
        reporter_(reporter),
        shared_{run.options(), run.config(), pool, run.ends()},
        replica_(shared_, worker),
        train_(run.train_set(), run.train_loader(worker.rank)),
        test_(run.test_set(), run.test_loader(worker.rank)),
        steps_per_epoch_(train_.batches() / run.options().accumulate) {}

  void resume() {
    position_ = load_checkpoint(directory_.file("checkpoint"), replica_, options_.workers);
    WISP_CHECK(position_.in_epoch < steps_per_epoch_, directory_.path(), " stopped after ",
               position_.in_epoch, " steps of an epoch, which now has ", steps_per_epoch_,
               "; resume with the same train.batch and data");
  }

  Summary run() {
    bool stopped = false;
    while (!stopped && !done()) {
      stopped = train_epoch();
      const double epochs = epochs_done();
      if (position_.in_epoch == steps_per_epoch_) {
        ++position_.epoch;
        position_.in_epoch = 0;
      }
      const bool due = options_.eval_every > 0 && position_.in_epoch == 0 &&
                       position_.epoch % options_.eval_every == 0;
      evaluated_ = due || stopped || done();
      if (evaluated_) test_accuracy_ = replica_.evaluate(test_).accuracy();
      if (reporter_)
        reporter_->epoch(epochs, position_.step, epoch_tally_,
                         evaluated_ ? test_accuracy_ : std::nan(""), images_per_s());
      save_checkpoint(directory_.file("checkpoint"), replica_, options_.workers, position_);
    }
    if (!evaluated_) test_accuracy_ = replica_.evaluate(test_).accuracy();
    return summary();
  }

  /// False if a resumed run had nothing left to do.
  bool trained() const { return costs_.steps > 0; }
  Trace& trace() { return replica_.trace(); }

 private:
  bool done() const {
    return position_.epoch >= options_.epochs ||
           (options_.max_steps > 0 && position_.step >= options_.max_steps);
  }
  double epochs_done() const {
    return static_cast<double>(position_.epoch) +
           static_cast<double>(position_.in_epoch) / static_cast<double>(steps_per_epoch_);
  }

  Batch next_batch() {
    if (options_.one_batch && first_batch_) return *first_batch_;
    std::optional<Batch> batch = train_.next();
    WISP_CHECK(batch, "the loader ran out of batches in epoch ", position_.epoch);
    if (options_.one_batch) first_batch_ = batch;
    return *batch;
  }

  void start_epoch() {
    if (!options_.one_batch) {
      train_.start_epoch(position_.epoch, position_.in_epoch * options_.accumulate);
    } else if (!first_batch_) {
      train_.start_epoch(0);
    }
  }

  /// What is left of the epoch under way. True if some rank asked to stop.
  bool train_epoch() {
    start_epoch();
    epoch_tally_ = {};
    const double begin = now_us();
    const int64_t first = position_.step;
    bool stop = false;
    while (position_.in_epoch < steps_per_epoch_ && !stop && !done()) {
      const StepReport report =
          replica_.step(position_.step, epochs_done(), [this] { return next_batch(); });
      stop = report.outcome == Outcome::stop;
      position_.skipped += report.outcome == Outcome::skipped;
      ++position_.step;
      ++position_.in_epoch;
      costs_.add(report);
      const StepLine line{position_.epoch,  position_.in_epoch,
                          steps_per_epoch_, position_.step,
                          report,           rate_since(begin, position_.step - first)};
      const bool last = stop || done() || position_.in_epoch == steps_per_epoch_;
      if (last || position_.step % options_.log_every == 0) {
        const TallyValues tally = replica_.tally();
        epoch_tally_ += tally;
        if (reporter_) reporter_->metrics(line, tally);
      }
      if (reporter_) reporter_->step(line);
    }
    train_us_ += now_us() - begin;
    return stop;
  }

  double rate_since(double begin_us, int64_t steps) const {
    return static_cast<double>(steps * options_.batch) / ((now_us() - begin_us) * 1e-6);
  }
  double images_per_s() const {
    return train_us_ > 0 ? static_cast<double>(costs_.steps * options_.batch) / (train_us_ * 1e-6)
                         : 0.0;
  }

  Summary summary() {
    const StepCost& sum = costs_.sum;
    double values[] = {static_cast<double>(sum.bytes_raw),
                       static_cast<double>(sum.bytes_encoded),
                       static_cast<double>(sum.bytes_sent),
                       static_cast<double>(sum.bytes_received),
                       static_cast<double>(sum.bytes_dense),
                       costs_.compute_ms,
                       sum.encode_ms,
                       sum.wait_ms,
                       sum.wire_ms,
                       sum.decode_ms};
    replica_.sum_over_workers(values);
    const double parts =
        std::max<double>(1.0, static_cast<double>(costs_.steps * options_.workers));
    Summary summary;
    summary.test_accuracy = test_accuracy_;
    summary.images_per_s = images_per_s();
    summary.steps = position_.step;
    summary.skipped = position_.skipped;
    summary.bytes_raw = values[0] / parts;
    summary.bytes_encoded = values[1] / parts;
    summary.bytes_sent = values[2] / parts;
    summary.bytes_received = values[3] / parts;
    summary.reduction_encoded = values[1] > 0 ? values[0] / values[1] : 1.0;
    summary.reduction_sent = values[2] > 0 ? values[4] / values[2] : 1.0;
    summary.compute_ms = values[5] / parts;
    summary.encode_ms = values[6] / parts;
    summary.wait_ms = values[7] / parts;
    summary.wire_ms = values[8] / parts;
    summary.decode_ms = values[9] / parts;
    return summary;
  }

  const TrainOptions& options_;
  const RunDirectory& directory_;
  Reporter* reporter_;  // rank 0's only
  Shared shared_;
  Replica replica_;
  Loader train_;
  Loader test_;
  const int64_t steps_per_epoch_;
  Position position_;
  std::optional<Batch> first_batch_;
  Costs costs_;
  TallyValues epoch_tally_;
  double test_accuracy_ = 0.0;
  bool evaluated_ = false;  // the weights as they are
  double train_us_ = 0.0;
};

}  // namespace

Summary train(Config config, const TrainRequest& request) {
  Prepared run(std::move(config));
  const RunDirectory directory(request.out, request.open);
  run.load();
  const TrainOptions& options = run.options();
  const bool resume = request.open == RunDirectory::Open::resume;
  directory.make();
  if (!resume) directory.write_config(run.config());
  Reporter reporter(directory, options, resume, request.quiet);

  MemoryPool pool;
  std::vector<std::optional<Trace>> traces(static_cast<size_t>(options.workers));
  Summary summary;
  bool trained = true;
  const LaunchOptions launch{options.threads, options.turns, options.link, options.timeout_s};
  run_workers(options.workers, launch, [&](Worker& worker) {
    Training training(run, pool, directory, worker, worker.rank == 0 ? &reporter : nullptr);
    if (resume) training.resume();
    if (resume && worker.rank == 0) directory.write_config(run.config());
    const Summary own = training.run();
    if (worker.rank == 0) {
      summary = own;
      trained = training.trained();
    }
    traces[static_cast<size_t>(worker.rank)] = training.trace();
  });
  if (!trained && std::filesystem::exists(directory.file("summary.json"))) {
    summary = Summary::from_json(directory.file("summary.json"));  // of the steps that were made
    reporter.finish(summary);
    return summary;
  }
  if (options.trace.steps > 0) {
    std::vector<const Trace*> all;
    for (const auto& trace : traces) all.push_back(&*trace);
    write_trace(directory.file("trace.json"), all);
  }
  directory.write("summary.json", summary.json());
  reporter.finish(summary);
  return summary;
}

Evaluation evaluate_run(const std::string& run_path, std::span<const std::string> overrides) {
  const RunDirectory directory(run_path, RunDirectory::Open::resume);
  Prepared run(Config::load(directory.file("config.toml"), overrides));
  run.load();
  const TrainOptions& options = run.options();
  MemoryPool pool;
  Evaluation evaluation;
  const LaunchOptions launch{options.threads, options.turns, {}, options.timeout_s};
  run_workers(options.workers, launch, [&](Worker& worker) {
    const Shared shared{options, run.config(), pool, run.ends()};
    Replica replica(shared, worker);
    load_checkpoint(directory.file("checkpoint"), replica, options.workers);
    Loader test(run.test_set(), run.test_loader(worker.rank));
    const TallyValues values = replica.evaluate(test);
    if (worker.rank == 0) {
      evaluation = {values.mean_loss(), values.accuracy(), static_cast<int64_t>(values.samples)};
    }
  });
  return evaluation;
}

}  // namespace wisp
