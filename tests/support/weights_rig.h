// Workers with their own weights, a synchronizer chosen by name, and gradients and updates of a
// test: x <- x - 0.1 g. Tests compare it with scalar models of papers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/io/config.h"
#include "distributed/launch.h"
#include "distributed/own_weights/own_weights.h"
#include "tests/support/damaging_communicator.h"

namespace wisp {

constexpr double kRigLr = 0.1;

struct WeightsRun {
  int workers = 3;
  std::string method;             // name in SynchronizerRegistry
  std::vector<std::string> keys;  // "gossip.graph=ring"
  std::vector<int64_t> numels = {4, 8};
  int64_t steps = 50;
  bool guard = false;
  bool overlap = true, late = false, turns = false;
  int64_t bucket_bytes = 16;
  ClipOptions clip;
  /// The gradient of element i, counted through the segments, at the worker's weight x.
  std::function<double(int rank, int64_t step, int64_t i, double x)> gradient;
  std::function<double(int rank, int64_t step)> loss = [](int, int64_t) { return 1.0; };
  std::function<std::vector<std::string>(int rank)> more_keys;  // additional keys of one rank
  Damage damage = [](int, std::span<const Bytes>) {};  // damage of rank 1's received messages
};

/// A worker's state between steps.
struct WeightsWorker {
  int rank;
  int64_t step;  // last completed step, -1 before the first
  Outcome outcome;
  Synchronizer& sync;
  FlatParameters& parameters;
  /// Weights without padding, in the order of the segments.
  std::vector<float> weights() const;
};

/// Calls `visit` in every worker before the first step and after each step.
void run_weights(const WeightsRun& run, const std::function<void(WeightsWorker&)>& visit);

/// weights[step][rank], after each step.
using WeightsHistory = std::vector<std::vector<std::vector<float>>>;
WeightsHistory weights_of(const WeightsRun& run);

}  // namespace wisp
