// A survey of a configuration's data: all samples, read in order, one batch at a time. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/setup/prepared.h"

namespace wisp {

struct Spread {
  int64_t least = 0, median = 0, most = 0;  // median: the lower one of an even number
};

/// Mean and deviation of all numbers of an input, as the model gets them.
struct Moments {
  double mean = 0.0, deviation = 0.0;
};

struct SplitSurvey {
  Split split = Split::train;
  int64_t samples = 0;
  int64_t work = 0;                            // in the unit of Facts::work
  int64_t steps = 0;                           // steps per epoch
  int64_t targets = 0;                         // except those that are -1
  int64_t outside = 0;                         // counted targets that are no class
  std::vector<int64_t> classes;                // number of targets by class
  std::optional<Spread> lengths;               // lengths of padded rows, or of windows
  std::vector<std::optional<Moments>> inputs;  // none for integers; without damaged samples
  std::optional<double> mixing;                // shuffle_quality() of a training epoch
  int64_t damaged = 0;
  std::vector<std::string> damage;  // descriptions of the first few damaged samples
};

struct DataSurvey {
  Facts facts;  // f32 inputs have the compute type
  int64_t batch = 0;
  std::vector<SplitSurvey> splits;     // existing splits, in the order of Split
  std::vector<std::string> notices{};  // files that were passed over
};

/// Reads all data that `prepared` has loaded. Training samples are augmented as in epoch 0.
DataSurvey survey_data(const Prepared& prepared);

}  // namespace wisp
