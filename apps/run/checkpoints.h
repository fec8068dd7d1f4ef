// The checkpoints of a run: RUN/checkpoints/step_N with one file for what all ranks share and one
// per rank. Which are kept, which is loaded, and what becomes of state when the number of workers
// changes.
#pragma once

#include <string>
#include <vector>

#include "apps/setup/replica.h"
#include "core/io/checkpoint_directory.h"

namespace wisp {

/// Where a run stands.
struct Position {
  int64_t epoch = 0;     // completed
  int64_t in_epoch = 0;  // steps done of the epoch under way; all of them: it is to be evaluated
  int64_t steps_per_epoch = 0;  // 0: an older checkpoint, which does not say
  int64_t step = 0;             // of the run
  int64_t skipped = 0;
  TallyValues tally;       // of the epoch under way, what metrics have told of it
  int64_t best_step = -1;  // by the model's first metric on the validation split, if there is one
  double best_value = 0.0;

  CheckpointFacts facts() const;
  /// Throws Error if one is missing.
  static Position from(const CheckpointFacts& facts);
};

class Checkpoints {
 public:
  Checkpoints(std::string folder, const CheckpointOptions& options)
      : folder_(std::move(folder)), options_(options) {}

  /// Saves all ranks' state as one set, then removes those that are not to be kept. Collective: all
  /// workers call it between steps.
  void save(Replica& replica, const Position& position) const;

  struct Loaded {
    Position position;
    std::vector<std::string> notices;  // rank 0's: what a person should know
  };
  /// Loads this rank's state; returns when all ranks have. `which` is "last" (a damaged one is
  /// passed over, with a notice), "best" (the last, if no validation split decided) or a step. If
  /// another number of workers saved it, each state's rule says what a rank gets; what a model
  /// carries is read if the position is within an epoch. Collective. Throws Error if there is no
  /// whole checkpoint, if the one asked for was not kept, or for one of another model, method or
  /// data.validation, and, within an epoch of a model that carries, of another train.batch or
  /// train.precision.
  Loaded load(Replica& replica, const std::string& which = "last") const;
  /// Loads what evaluation takes of a checkpoint, by any number of workers: the weights and running
  /// statistics, or their averages over time if the run kept them; rank 0's statistics; the mean
  /// over workers of both if these have weights of their own. Returns what a person should know.
  /// Throws Error as above.
  std::vector<std::string> load_evaluated(const FlatParameters& parameters,
                                          const std::string& which = "last") const;
  /// The same into a replica, whose other state stays as it is. Collective. Throws Error for a
  /// checkpoint of another data.validation, too.
  std::vector<std::string> load_evaluated(Replica& replica,
                                          const std::string& which = "last") const;
  /// Whether the checkpoint of a step is there, whole or not. Collective.
  bool has(Replica& replica, int64_t step) const;

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
