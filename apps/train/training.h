// One worker's run: its steps, evaluations and checkpoints, in the order that every worker shares.
// Belongs to its worker's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "apps/run/checkpoints.h"
#include "apps/run/reporter.h"
#include "apps/run/run_directory.h"
#include "apps/run/run_facts.h"
#include "apps/run/run_identity.h"
#include "apps/run/summary.h"
#include "apps/setup/prepared.h"
#include "apps/setup/replica.h"
#include "apps/train/gradient_record.h"

namespace wisp {

class Training {
 public:
  /// `stop` is asked before each step; if it says yes to any worker, all stop after that step. The
  /// reporter is rank 0's, null elsewhere. The arguments outlive this object.
  Training(const Prepared& run, MemoryPool& pool, const RunDirectory& directory, Worker& worker,
           const RunFacts& facts, Reporter* reporter, std::function<bool()> stop);

  /// Begins with the weights that model.init names, if it does. Collective. Throws Error if the
  /// workers' weights differ.
  void start();
  /// Goes on from the newest checkpoint. Collective. Throws Error as Checkpoints::load, if the
  /// data or batch no longer fit, and, within an epoch, if there are `changes` of its samples.
  /// These are rank 0's, who tells of the others.
  void resume(const Changes& changes);
  /// Trains to the end. False if it stopped before because somebody asked; then the checkpoint of
  /// that step is saved, and nothing is left to do. Collective.
  bool run();
  /// Collective.
  Summary summary();

  int64_t step() const { return position_.step; }
  /// False if a resumed run had nothing left to do.
  bool trained() const { return steps_here_ > 0; }
  /// Every worker's spans by rank 0's clock, as text for write_trace(), behind those that the file
  /// `path` has of the steps before this process's; on rank 0 alone. Collective.
  std::vector<std::string> gather_spans(const std::string& path);

 private:
  bool done() const;
  bool epoch_trained() const { return position_.in_epoch == steps_per_epoch_; }
  double epochs_done() const;
  bool train_epoch();
  bool finish_epoch();
  std::optional<Evaluated> evaluate(bool end, const std::function<bool()>& stop);
  void check_weights();
  void start_record();
  void start_epoch();
  Batch next_batch();
  void add_times(const StepReport& report);
  void save();
  void warn(const std::vector<std::string>& texts);
  void tell_damage();
  std::string numerics_of_all();
  Spent spent(double epoch_us = 0.0);
  double work_per_s() const;
  void add_scores(const std::string& prefix, const TallyValues& values, Summary& summary) const;
  std::optional<TallyValues> test_the_best();

  const TrainOptions& options_;
  Reporter* reporter_;
  const std::function<bool()> stop_;
  const Checkpoints checkpoints_;
  const std::vector<std::string>& remarks_;  // of what is exchanged
  Shared shared_;
  Replica replica_;
  const std::unique_ptr<Loader> train_, validation_, test_;  // validation: if there is such a split
  const RunFacts& facts_;
  std::optional<GradientRecord> record_;
  const std::string record_path_;
  const int64_t steps_per_epoch_;
  Position position_;
  int64_t steps_here_ = 0;  // made by this process
  double damaged_ = 0.0;    // samples, over all workers, that could not be read
  double work_here_ = 0.0;  // images, tokens, frames of these, over all workers
  std::optional<Batch> first_batch_;
  StepTimes times_;                     // of the steps of this process, in sum
  std::optional<Evaluated> evaluated_;  // the weights as they are
  double train_us_ = 0.0;
};

}  // namespace wisp
