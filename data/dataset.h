// Labelled images held in memory. A Dataset does not change once made: any number of loaders and
// threads may read one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/io/config.h"
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

/// Where a data set comes from: its options are bound, nothing is read yet.
class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual Shape sample() const = 0;  // (H, W, C)
  virtual int classes() const = 0;
  /// Reads or draws a split. Throws Error for data that is missing or damaged.
  virtual Dataset load(Split split) const = 0;
};

/// Data sets by name. A factory binds its keys "data.…".
using DataRegistry = Registry<DataSource, Config&>;
using DataRegistration = Registration<DataSource, Config&>;

/// The data set that key data.name tells. Throws Error with the known names if there is none.
std::unique_ptr<DataSource> make_data_source(Config& config);

}  // namespace wisp
