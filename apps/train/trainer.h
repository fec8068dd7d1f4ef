// Training and evaluation of a configured model: in one process with any number of virtual workers,
// or in several with one worker each, all of which make the same call. Called from one thread of a
// process.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/run/run_directory.h"
#include "apps/run/summary.h"
#include "core/io/config.h"
#include "models/model.h"

namespace wisp {

class Inference;
class Prepared;

struct TrainRequest {
  std::string out;  // run directory
  RunDirectory::Open open = RunDirectory::Open::create;
  bool quiet = false;
  /// Whether to stop: every worker asks before each step and batch of an evaluation.
  std::function<bool()> stop = [] { return false; };
};

/// Trains as `config` says and writes all results to the run directory. Returns nothing, and writes
/// no summary, if `stop` ended it early. Throws Error before anything runs if the configuration
/// makes no sense, and "rank R: …" if a worker fails later.
std::optional<Summary> train(Config config, const TrainRequest& request);

/// A class's targets in an evaluation.
struct ClassCount {
  int64_t targets = 0, correct = 0;
};

struct Evaluation {
  double loss = 0.0;            // mean over targets
  std::vector<double> metrics;  // values of the model's metrics, in their order
  int64_t targets = 0;
  std::vector<ClassCount> classes;  // by class, if asked for
};

struct RunEvaluation {
  std::vector<Metric> metrics;
  Evaluation test;
  std::optional<Evaluation> validation;  // if the run has a validation split
  std::vector<std::string> notices;      // notes for the user on data and checkpoint
};

/// A further question to the evaluated model. One process calls it.
using AskModel = std::function<void(const Prepared& run, Inference& model)>;

/// Evaluates a checkpoint of a run: "last", "best" or a step. Then calls `ask`, if there is one.
/// `by_class` counts each class too, which takes a model whose output is a row of logits for each
/// target.
RunEvaluation evaluate_run(const std::string& run, std::span<const std::string> overrides,
                           const std::string& checkpoint = "last", const AskModel& ask = {},
                           bool by_class = false);

}  // namespace wisp
