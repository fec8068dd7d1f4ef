// A trainable model: from a batch to a loss, and the figures of merit beside it.
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

/// State that a model hands from one batch to the next, as a recurrent net its hidden state:
/// (columns, …) each. A step returns the new one and leaves the old one as it is, so that backward
/// still reads it and a skipped step drops the new one.
using Carry = std::vector<Tensor>;

struct Step {
  Variable loss;    // one element: the sum over the batch's targets, divided by batch.count; none
                    // without targets
  Variable output;  // what is measured, predicted and exported: logits (N, classes)
  Tensor lengths;   // (N) i64, where the output's rows are padded
  Carry after;      // of the shapes that carried() tells
  double weight = 1.0;  // gradients are those of so many times the loss
};

/// What a metric warns of.
struct Alarm {
  double above = 0.0;        // mean over an epoch of training
  int64_t epochs = 1;        // as many in a row
  const char* meaning = "";  // "0.42 % " goes before it
};

/// A figure of merit: a function of a mean over targets, as a rule.
struct Metric {
  std::string name;      // "accuracy": test_accuracy is that of the test set
  bool percent = false;  // people read it in percent
  bool lower_is_better = false;
  double (*of_mean)(double mean) = [](double mean) { return mean; };
  std::optional<Alarm> alarm;

  bool better(double a, double b) const { return lower_is_better ? a < b : a > b; }
  /// What people read for 1 of it.
  double scale() const { return percent ? 100.0 : 1.0; }
  /// "45.67 %", "78.41"; "-" for NaN.
  std::string text(double value) const;
};

class Model : public Module {
 public:
  /// `before` has what carried() tells for the batch's columns, or nothing if that is nothing.
  virtual Step forward(Context& context, const Batch& batch, const Carry& before) = 0;
  /// The shape of one column of each tensor that is carried.
  virtual std::vector<Shape> carried() const { return {}; }
  /// What is measured beside the loss; the first decides which checkpoint is the best. Here: the
  /// accuracy.
  virtual std::vector<Metric> metrics() const;
  /// Adds a batch to `sums`, (metrics, 2) f64: for each metric a sum and what it is divided by. On
  /// the context's stream; counts stay below 2^53. Here: rows of logits that point at their target.
  virtual void measure(const Step& step, const Batch& batch, const Tensor& sums) const;
  /// What a parameter or buffer is called in the files that other programs write and read; several
  /// names if they have it several times.
  virtual std::vector<std::string> exchange_names(const std::string& name) const { return {name}; }
};

/// The models by name. Their options are keys "model.…".
using ModelRegistry = Registry<Model, Config&, const Facts&>;
using ModelRegistration = Registration<Model, Config&, const Facts&>;

/// The model that key model.name told. Throws Error with the known names if there is none.
std::unique_ptr<Model> make_model(const std::string& name, Config& config, const Facts& facts);

}  // namespace wisp
