// A survey of a configuration's data, read in order, nothing left out, a batch at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/setup/prepared.h"

namespace wisp {

struct Spread {
  int64_t least = 0, median = 0, most = 0;  // of an even number the lower median
};

/// Of all numbers of an input, as the model gets them.
struct Moments {
  double mean = 0.0, deviation = 0.0;
};

struct SplitSurvey {
  Split split = Split::train;
  int64_t samples = 0;
  int64_t work = 0;                            // in Facts::work
  int64_t steps = 0;                           // of an epoch
  int64_t targets = 0;                         // without those that are -1
  int64_t outside = 0;                         // of these, that are no class
  std::vector<int64_t> classes;                // targets of each
  std::optional<Spread> lengths;               // of rows that are padded, or of windows
  std::vector<std::optional<Moments>> inputs;  // none of whole numbers; damaged samples left out
  int64_t damaged = 0;
  std::vector<std::string> damage;  // what is wrong with the first few of them
};

struct DataSurvey {
  Facts facts;  // f32 inputs are in what the model computes in
  int64_t batch = 0;
  std::vector<SplitSurvey> splits;     // in the order of Split, those that there are
  std::vector<std::string> notices{};  // what lay beside them and was passed over
};

/// Reads all that `prepared` has loaded. Training samples are augmented as in its epoch 0.
DataSurvey survey_data(const Prepared& prepared);

}  // namespace wisp
