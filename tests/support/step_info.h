// Steps as tests give them to methods. Any thread.
#pragma once

#include "compression/compressor.h"

namespace wisp {

/// A step in epoch `step`, with a learning rate and a seed.
inline StepInfo step_info(int64_t step, double ratio = 1.0) {
  StepInfo info;
  info.step = info.applied = step;
  info.epoch = static_cast<double>(step);
  info.ratio = ratio;
  info.lr = 0.1;
  info.last_lr = step > 0 ? 0.1 : 0.0;
  info.seed = 5;
  return info;
}

/// What most sparse methods ask of a step, and nothing else: seed 0, no learning rate.
inline StepInfo sparse_info(int64_t step, double ratio, int workers = 1) {
  StepInfo info;
  info.step = info.applied = step;
  info.ratio = ratio;
  info.ranks = info.summands = workers;
  return info;
}

}  // namespace wisp
