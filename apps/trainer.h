// Training and evaluation of a configured model, by one process with any number of virtual workers.
#pragma once

#include <span>
#include <string>

#include "apps/run_directory.h"
#include "apps/summary.h"
#include "core/config.h"

namespace wisp {

struct TrainRequest {
  std::string out;  // run directory
  RunDirectory::Open open = RunDirectory::Open::create;
  bool quiet = false;
};

/// Trains as `config` says and leaves everything in the run directory. Throws Error for a
/// configuration that makes no sense, before anything runs, and with "rank R: …" for what fails on
/// the way.
Summary train(Config config, const TrainRequest& request);

struct Evaluation {
  double loss = 0.0;
  double accuracy = 0.0;
  int64_t samples = 0;
};

/// Evaluates the checkpoint of a run on its test set.
Evaluation evaluate_run(const std::string& run, std::span<const std::string> overrides);

}  // namespace wisp
