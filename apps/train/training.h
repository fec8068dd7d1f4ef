// One worker's training run: its steps, evaluations and checkpoints, in an order that all workers
// share. Belongs to its worker's thread.
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
#include "apps/train/test_units.h"

namespace wisp {

class Training {
 public:
  /// `stop` is asked before each step and each batch of an evaluation. If it says yes to any
  /// worker, all stop after that step. `reporter` is null except on rank 0. The arguments outlive
  /// this object.
  Training(const Prepared& run, Replica& replica, RunDirectory& directory, const RunFacts& facts,
           Reporter* reporter, std::function<bool()> stop);

  /// Begins a new run, with the weights of model.init if the key is given. Collective. Throws Error
  /// if the workers' weights differ.
  void start();
  /// Continues from the newest checkpoint; returns false if there is none. Rank 0 passes `changes`
  /// since the run began, and reports them if there is something to train; other ranks pass none.
  /// Collective. Throws Error as Checkpoints::load, if the data or batch size no longer fit, and
  /// within an epoch if `changes` affect its samples.
  bool resume(const Changes& changes);
  /// Trains to the end. Returns false if `stop` ended it early; the checkpoint of the last step is
  /// saved then. No file is changed before the first step is made, and none if nothing is left to
  /// do. Collective.
  bool run();
  /// The summary of the finished run. Collective.
  Summary summary();

  int64_t step() const { return position_.step; }
  /// Whether run() had something to do, and changed files.
  bool begun() const { return begun_; }
  /// False if a resumed run had nothing left to do.
  bool trained() const { return steps_here_ > 0; }
  /// The spans of all workers by rank 0's clock, as text for write_trace(); empty except on rank 0.
  /// They follow the spans in the file `path` of the steps before this process began. Collective.
  std::vector<std::string> gather_spans(const std::string& path);

 private:
  bool done() const;
  void claim_directory();
  bool epoch_trained() const { return position_.in_epoch == position_.steps_per_epoch; }
  bool train_epoch();
  bool finish_epoch();
  std::optional<Evaluated> evaluate(bool end, const std::function<bool()>& stop);
  void check_weights();
  void start_record();
  void start_epoch();
  Batch next_batch();
  void save();
  void warn(const std::vector<std::string>& texts);
  void tell_damage();
  std::string numerics_of_all();
  std::string divergence() const;
  Spent spent(double epoch_us = 0.0);
  double work_per_s() const;
  void add_scores(const std::string& prefix, const TallyValues& values, Summary& summary) const;
  std::optional<TallyValues> test_the_best();

  const Prepared& run_;
  RunDirectory& directory_;
  const TrainOptions& options_;
  Reporter* reporter_;
  const std::function<bool()> stop_;
  const Checkpoints checkpoints_;
  Replica& replica_;
  const std::unique_ptr<Loader> train_, validation_, test_;  // validation_ may be null
  const RunFacts& facts_;
  std::optional<GradientRecord> record_;
  const std::string record_path_;
  Position position_;
  std::optional<Position> resumed_;  // where a resumed run went on
  bool begun_ = false;
  int64_t steps_here_ = 0;  // steps made by this process
  double damaged_ = 0.0;    // samples that could not be read, over all workers
  double work_here_ = 0.0;  // images, tokens or frames of steps_here_, all workers
  std::optional<Batch> first_batch_;
  StepTimes times_;                     // sums over steps_here_
  std::optional<Evaluated> evaluated_;  // scores of the current weights
  double train_us_ = 0.0;
};

}  // namespace wisp
