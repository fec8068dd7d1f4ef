// A trained run's model in a program of one's own: made from the run directory, without the data
// set. An object belongs to one thread. It computes with as many OpenMP threads as the run's key
// `threads` says; 0: as that thread has.
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
  /// The model that the run's configuration names, with what evaluation takes of a checkpoint
  /// (Checkpoints::load_evaluated): "last", "best" or a step. `overrides` change keys of the
  /// configuration: train.precision=f32. Throws Error for a directory that holds no run, an unknown
  /// key, a model that this program has not, or a damaged checkpoint.
  explicit Inference(const std::string& run, std::span<const std::string> overrides = {},
                     const std::string& checkpoint = "last");
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

  /// Forward, in evaluation mode: no dropout, no batch statistics, no graph. Inputs that are f32 by
  /// the facts are of type compute(); without targets there is no loss. `before` is what the step
  /// before left in Step::after, or zeros(); nothing for a model that carries nothing. Throws Error
  /// for inputs or state that are not the model's. The result ends with this object.
  Step operator()(const Batch& batch, const Carry& before = {});
  /// What a text of so many columns begins with.
  Carry zeros(int64_t columns) const;

  /// The run's, with the overrides; not all of its keys are bound.
  const Config& config() const { return config_; }
  const Facts& facts() const { return facts_.facts; }
  const std::vector<Metric>& metrics() const { return metrics_; }
  DType compute() const { return context_.compute; }
  /// What a person should know of the checkpoint: that a damaged one was passed over.
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
  std::vector<Metric> metrics_;
  std::unique_ptr<FlatParameters> parameters_;
  std::vector<std::string> notices_;
};

}  // namespace wisp
