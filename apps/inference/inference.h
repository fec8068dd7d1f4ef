// A trained run's model for your own program, made from the run directory without the data set. An
// object belongs to one thread. It computes with as many OpenMP threads as the run's key `threads`
// says; 0: as many as its thread has, within the process's cores. It takes fewer, with the same
// result, where OpenMP does not grant them, as within a parallel region.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/run/run_facts.h"
#include "apps/setup/train_options.h"
#include "core/parameter.h"
#include "models/model.h"

namespace wisp {

class Inference {
 public:
  /// Builds the model that the run's configuration names, with the weights that evaluation takes
  /// from a checkpoint (Checkpoints::load_evaluated): "last", "best" or a step. `overrides` change
  /// keys of the configuration: train.precision=f32. Throws Error for a directory without a run, an
  /// unknown key, a model that this program lacks, or a damaged checkpoint.
  explicit Inference(const std::string& run, std::span<const std::string> overrides = {},
                     const std::string& checkpoint = "last");
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

  /// The forward pass in evaluation mode: no dropout, running statistics, no graph. Inputs that are
  /// f32 in facts() must be of type compute(). Without targets there is no loss. `before` is
  /// Step::after of the step before, or zeros(); empty for a model without state. Throws Error for
  /// inputs or state of other shapes or types. The result is valid while this object lives.
  Step operator()(const Batch& batch, const Carry& before = {});
  /// The state of `columns` columns at the beginning of a text.
  Carry zeros(int64_t columns) const;

  /// The run's configuration with the overrides; not all of its keys are bound.
  const Config& config() const { return config_; }
  const Facts& facts() const { return facts_.facts; }
  DType compute() const { return context_.compute; }
  /// Notes for the user: that a damaged checkpoint was passed over, or that there are fewer
  /// threads.
  const std::vector<std::string>& notices() const { return notices_; }
  Model& model() { return *model_; }
  const FlatParameters& parameters() const { return *parameters_; }
  Context& context() { return context_; }

 private:
  void check(const Batch& batch, const Carry& before) const;

  Config config_;
  TrainOptions options_;
  RunFacts facts_;
  MemoryPool pool_;
  Stream stream_;
  std::unique_ptr<Backend> backend_;
  Context context_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<FlatParameters> parameters_;
  std::vector<std::string> notices_;
};

/// Natural logs of the softmax of one row of a model's logits (rows, classes), in f64. Throws Error
/// if a result is not finite. Any thread.
std::vector<double> log_softmax(const Tensor& logits, int64_t row);

}  // namespace wisp
