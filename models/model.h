// A trainable model: from a batch to a loss and its metrics.
#pragma once

#include <memory>
#include <string>

#include "core/batch.h"
#include "core/io/config.h"
#include "core/registry.h"
#include "layers/module.h"

namespace wisp {

struct Step {
  Variable loss;    // one element, mean over the batch
  Variable logits;  // (N, classes)
};

class Model : public Module {
 public:
  virtual Step forward(Context& context, const Batch& batch) = 0;
  /// What a parameter or buffer is called in the files that other programs write and read.
  virtual std::string exchange_name(const std::string& name) const { return name; }
};

/// A model's ends, as the data set has them; the number of classes may be greater.
struct ModelSetup {
  Shape input;  // of one sample: (H, W, C)
  int64_t classes = 0;
};

/// The models by name. Their options are keys "model.…".
using ModelRegistry = Registry<Model, Config&, const ModelSetup&>;

/// The model that key model.name told. Throws Error with the known names if there is none.
std::unique_ptr<Model> make_model(const std::string& name, Config& config, const ModelSetup& setup);

}  // namespace wisp
