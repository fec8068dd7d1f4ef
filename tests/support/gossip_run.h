// A run that all tests of gossip share: four workers on a graph, each with its own minimum.
#pragma once

#include <string>

#include "tests/support/weights_rig.h"

namespace wisp {

constexpr int64_t kNumel = 12;  // number of weights, initially 1; fields of 4 and 8
inline const char* const kGraph = "0-1, 1-2, 2-3, 3-0, 0-2";

/// The gradient of a loss whose minimum depends on the rank.
inline double gossip_gradient(int rank, int64_t, int64_t i, double x) {
  return (0.5 + 0.25 * rank) * (x - rank - 0.1 * static_cast<double>(i));
}

inline WeightsRun gossip(const std::string& method, const std::string& code,
                         const std::string& graph = kGraph, double consensus_step = 1.0) {
  WeightsRun run;
  run.workers = 4;
  run.method = method;
  run.keys = {"gossip.graph=" + graph, "gossip.code=" + code};
  if (method == "choco") run.keys.push_back(concat("gossip.consensus_step=", consensus_step));
  run.gradient = gossip_gradient;
  return run;
}

}  // namespace wisp
