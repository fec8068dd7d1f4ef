// Times the trainer's own step on one batch in memory.
#pragma once

#include <string>
#include <vector>

#include "core/device/device_work.h"
#include "core/io/config.h"

namespace wisp {

struct StepTiming {
  std::string name;  // of the case
  std::string impl;
  int64_t batch = 0;
  double rate = 0.0;                // of work at the median step, in `unit`
  std::string unit;                 // "images/s"
  double ms = 0.0;                  // median, until all workers and their devices have done it
  double peak_mb = 0.0;             // growth of the process's resident memory
  double peak_device_mb = 0.0;      // most lent at once by the run's pool on the first device,
                                    // without data that lives there; the CPU: 0
  double loss0 = 0.0, loss1 = 0.0;  // of the first and the last step
  std::vector<double> losses;
  DeviceWork device;  // what the timed steps of this process's workers asked of devices
  int64_t steps = 0;  // so many

  std::string json() const;  // one line
};

/// Repeats steps on the first batch of epoch 0 until `seconds` have passed, at least `least_steps`
/// of them, after three to warm up. The losses are the mean over workers, warm-up included. `name`
/// is what the row is called.
StepTiming bench_step(Config config, const std::string& name, double seconds,
                      int64_t least_steps = 5);

}  // namespace wisp
