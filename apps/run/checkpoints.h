// The checkpoints of a run: RUN/checkpoints/step_N with one file for shared state and one per rank.
// The class decides which to keep and which to load, and converts state when the number of workers
// changes. Each worker's thread calls.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/setup/replica.h"
#include "core/io/checkpoint_directory.h"

namespace wisp {

/// The progress of a run.
struct Position {
  int64_t epoch = 0;            // completed epochs
  int64_t in_epoch = 0;         // steps done in this epoch; if all, evaluation is due
  int64_t steps_per_epoch = 0;  // 0: unknown, in an old checkpoint
  int64_t step = 0;             // steps of the run
  int64_t skipped = 0;
  TallyValues tally;       // sums of this epoch, up to the last report of metrics
  int64_t best_step = -1;  // step with the best validation metric, the first one; -1: none
  double best_value = 0.0;

  /// Epochs done, with fraction.
  double epochs() const {
    return static_cast<double>(epoch) +
           static_cast<double>(in_epoch) / static_cast<double>(steps_per_epoch);
  }
  CheckpointFacts facts() const;
  /// Throws Error if a fact is missing, or has a value that no run reaches.
  static Position from(const CheckpointFacts& facts);
};

class Checkpoints {
 public:
  Checkpoints(std::string folder, const CheckpointOptions& options)
      : folder_(std::move(folder)), options_(options) {}

  /// Saves the state of all ranks as one set, then removes checkpoints beyond options.keep. Rank 0
  /// calls `publish` when all files are written, before the checkpoint has its name. Collective:
  /// all workers call it between steps.
  void save(
      Replica& replica, const Position& position,
      const std::function<void()>& publish = [] {}) const;

  struct Loaded {
    Position position;
    std::vector<std::string> notices;  // on rank 0: notes for the user
  };
  /// Loads this rank's state, and returns when all ranks have loaded theirs. `which` is "last"
  /// (passes over damaged ones, with a notice), "best" (the last if there was no validation split)
  /// or a step. If another number of workers saved the checkpoint, each state has a rule for the
  /// new ranks. The state that a model carries is read only within an epoch. Collective. Throws
  /// Error if no whole checkpoint exists or the requested one was not kept, for another model,
  /// method or data.validation, and for values that no run saves. Weights that are not finite are a
  /// notice, because a run that diverges has them. Within an epoch, a model that carries state also
  /// requires the same train.batch and train.precision.
  Loaded load(Replica& replica, const std::string& which = "last") const;
  /// Loads the state that evaluation takes, with any number of workers: weights and running
  /// statistics, or their averages over time if the run kept them. Statistics are rank 0's; if the
  /// workers' weights differ, both are means over workers. Returns notes for the user. Throws Error
  /// as load().
  std::vector<std::string> load_evaluated(const FlatParameters& parameters,
                                          const std::string& which = "last") const;
  /// Loads the state that evaluation takes into a replica, whose other state stays. Collective.
  /// Also throws Error for a checkpoint of another data.validation.
  std::vector<std::string> load_evaluated(Replica& replica,
                                          const std::string& which = "last") const;
  /// Whether the checkpoint of a step exists, whole or not. Collective.
  bool has(Replica& replica, int64_t step) const;
  /// Whether there is any checkpoint, whole or not. Collective.
  bool any(Replica& replica) const;

 private:
  int64_t last(const std::vector<int64_t>& steps, std::vector<std::string>& notices) const;
  int64_t choose(const std::string& which, std::vector<std::string>& notices) const;
  std::string choose(Replica& replica, const std::string& which,
                     std::vector<std::string>& notices) const;
  void prune(const Position& position) const;

  std::string folder_;
  CheckpointOptions options_;
};

}  // namespace wisp
