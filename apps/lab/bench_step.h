// A benchmark of the trainer's own step on one batch in memory. Called from one thread.
#pragma once

#include <string>
#include <vector>

#include "core/device/device_work.h"
#include "core/io/config.h"

namespace wisp {

struct StepTiming {
  std::string name;  // name of the case
  std::string impl;
  int64_t batch = 0;
  double rate = 0.0;            // work per second at the median step
  std::string unit;             // "images/s"
  double ms = 0.0;              // median time until all workers and their devices are done
  double peak_mb = 0.0;         // growth of the process's resident memory
  double peak_device_mb = 0.0;  // peak of the first device's pool, without resident data; CPU: 0
  std::vector<double> losses;
  DeviceWork device;  // device work of this process's workers in timed steps
  int64_t steps = 0;  // steps counted in `device`, over workers

  std::string json() const;  // one line
};

/// Repeats steps on the first batch of epoch 0 until `seconds` have passed, at least `least_steps`,
/// after three to warm up. Losses are means over workers, warm-up included. `name` is the row's
/// name.
StepTiming bench_step(Config config, const std::string& name, double seconds, int64_t least_steps);

}  // namespace wisp
