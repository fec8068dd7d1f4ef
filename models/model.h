// A trainable model: it maps a batch to a loss and an output, and names the metrics of the output.
// Each worker has its own, used by one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/registry.h"
#include "core/batch.h"
#include "core/facts.h"
#include "core/io/config.h"
#include "layers/module.h"

namespace wisp {

/// State that a model hands from one batch to the next, for example a recurrent net's hidden state.
/// Each tensor is (columns, …). A step returns new tensors and leaves the old ones unchanged:
/// backward still reads them, and a skipped step keeps them.
using Carry = std::vector<Tensor>;

/// The result of one forward pass.
struct Step {
  Variable loss;    // one element: sum over the batch's targets divided by batch.count; undefined
                    // without targets
  Variable output;  // input of metrics, predictions and exports: logits (N, classes)
  Tensor lengths;   // (N) i64, if the output's rows are padded
  Carry after;      // shapes as in carried()
  double weight = 1.0;  // factor of the loss in the gradients
};

/// A warning that a metric raises in training.
struct Alarm {
  double above = 0.0;        // threshold for the mean over a training epoch
  int64_t epochs = 1;        // number of epochs in a row above it
  const char* meaning = "";  // text after the figure: "0.42 % " + meaning
};

/// A figure of merit, usually a function of a mean over targets.
struct Metric {
  std::string name;      // "accuracy": the test set's is test_accuracy
  bool percent = false;  // shown in percent
  bool lower_is_better = false;
  double (*of_mean)(double mean) = [](double mean) { return mean; };
  std::optional<Alarm> alarm;

  bool better(double a, double b) const { return lower_is_better ? a < b : a > b; }
  /// The factor from the value to the number shown.
  double scale() const { return percent ? 100.0 : 1.0; }
  /// "45.67 %" or "78.41"; "-" for NaN.
  std::string text(double value) const;
};

/// PyTorch's name of a parameter: "weight" and "bias" end it in a norm, too, for "gamma" and
/// "beta".
std::string pytorch_name(const std::string& name);

class Model : public Module {
 public:
  /// Maps a batch to output and loss. `before` has a tensor (columns, …) for each shape in
  /// carried().
  virtual Step forward(Context& context, const Batch& batch, const Carry& before) = 0;
  /// The shape of one column of each carried tensor.
  virtual std::vector<Shape> carried() const { return {}; }
  /// The metrics beside the loss. The first one decides which checkpoint is the best. By default
  /// the accuracy.
  virtual std::vector<Metric> metrics() const;
  /// Adds a batch to `sums`, (metrics, 2) f64: for each metric a sum and its divisor. Runs on the
  /// context's stream; counts stay below 2^53. By default counts the rows of logits whose largest
  /// value is at their target.
  virtual void measure(const Step& step, const Batch& batch, const Tensor& sums) const;
  /// The name of a parameter or buffer in files of other programs, or several names if the files
  /// hold it several times.
  virtual std::vector<std::string> exchange_names(const std::string& name) const { return {name}; }
};

/// The models by name. The keys of their options are "model.…".
using ModelRegistry = Registry<Model, Config&, const Facts&>;
using ModelRegistration = Registration<Model, Config&, const Facts&>;

/// The model called `name`, the value of key model.name. Throws Error with the known names if there
/// is none.
std::unique_ptr<Model> make_model(const std::string& name, Config& config, const Facts& facts);

}  // namespace wisp
