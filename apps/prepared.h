// A configuration made ready to run: bound, checked, its data loaded.
#pragma once

#include <memory>

#include "apps/train_options.h"
#include "data/loader.h"
#include "models/model.h"

namespace wisp {

struct Prepared {
  TrainOptions options;
  Config config;  // every key bound
  std::unique_ptr<Dataset> train_set;
  std::unique_ptr<Dataset> test_set;
  ModelSetup ends;

  LoaderOptions train_loader(int rank) const;
  LoaderOptions test_loader(int rank) const;
};

/// Binds every key once, on a model without memory, so that a wrong configuration fails before
/// anything is written. Throws Error with file:line.
Prepared prepare(Config config);

}  // namespace wisp
