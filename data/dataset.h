// Labelled images held in memory. A Dataset does not change once made: any number of loaders and
// threads may read one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/registry.h"
#include "core/tensor.h"

namespace wisp {

enum class Split { train, test };
const char* name_of(Split split);

struct Dataset {
  std::string name;  // for messages: "cifar10 train"
  Tensor images;     // (N, H, W, C) u8
  Tensor labels;     // (N) i32 in [0, classes)
  int classes = 0;
  std::vector<double> mean;       // per channel, of pixels in 0..255
  std::vector<double> deviation;  // standard deviation, likewise

  int64_t count() const { return images.shape()[0]; }
  /// Throws Error if the parts do not fit together. Labels are checked where they are used.
  void check() const;
};

/// A factory binds its keys of `data.` and reads or draws the split.
using DatasetRegistry = Registry<Dataset, Config&, Split>;
using DatasetRegistration = Registration<Dataset, Config&, Split>;

/// The data set that key data.name tells. Throws Error with the known names if there is none.
std::unique_ptr<Dataset> make_dataset(Config& config, Split split);

}  // namespace wisp
