// Training and evaluation of a configured model, by one process with any number of virtual workers,
// or by processes with one each, which all make the same call.
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
  std::function<bool()> stop = [] { return false; };  // asked before each step, by every worker
};

/// Trains as `config` says and leaves everything in the run directory; nothing is returned, and no
/// summary left, if it was asked to stop before the end. Throws Error for a configuration that
/// makes no sense, before anything runs, and with "rank R: …" for what fails on the way.
std::optional<Summary> train(Config config, const TrainRequest& request);

struct Evaluation {
  double loss = 0.0;            // mean over targets
  std::vector<double> metrics;  // the values of the model's
  int64_t targets = 0;
};

struct RunEvaluation {
  std::vector<Metric> metrics;
  Evaluation test;
  std::optional<Evaluation> validation;  // if the run has such a split
  std::vector<std::string> notices;      // what a person should know of data and checkpoint
};

/// Asks the model that is evaluated something else, on one process.
using AskModel = std::function<void(const Prepared& run, Inference& model)>;

/// Evaluates a checkpoint of a run: "last", "best", or that of a step; then asks its model, if
/// there is anything to ask.
RunEvaluation evaluate_run(const std::string& run, std::span<const std::string> overrides,
                           const std::string& checkpoint = "last", const AskModel& ask = {});

}  // namespace wisp
