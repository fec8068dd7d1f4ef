#include "models/classifier.h"

#include "core/ops.h"

namespace wisp {

ClassifierOptions bind_classifier(Config& config) {
  ClassifierOptions options;
  config.bind("model.label_smoothing", options.label_smoothing,
              "label smoothing: share of the target spread over all classes, in [0, 1)");
  config.bind("model.mixup", options.mixup,
              "mixup (Zhang et al. 2018): trains on mixtures of two samples with shares from "
              "Beta(mixup, mixup), in (0, 1]; 0: on single samples");
  config.expect(0.0 <= options.label_smoothing && options.label_smoothing < 1.0,
                "model.label_smoothing", options.label_smoothing, "a number in [0, 1)");
  config.expect(0.0 <= options.mixup && options.mixup <= 1.0, "model.mixup", options.mixup,
                "a number in [0, 1]");
  return options;
}

Classifier::Classifier(int64_t classes, const ClassifierOptions& options)
    : many_classes_(classes > 10), options_(options) {}

Step Classifier::forward(Context& context, const Batch& batch, const Carry&) {
  Tensor input = batch.inputs[0], shares;
  if (context.training && options_.mixup > 0.0 && batch.targets.defined()) {
    shares = mixup_shares(context, batch.targets, options_.mixup);
    input = mix_neighbours(context, input, shares);
  }
  const Variable output = logits(Variable(context, input));
  return {cross_entropy(output, batch.targets, options_.label_smoothing, shares), output};
}

std::vector<Metric> Classifier::metrics() const {
  std::vector<Metric> metrics = Model::metrics();
  if (many_classes_) metrics.push_back({.name = "top5_accuracy", .percent = true});
  return metrics;
}

void Classifier::measure(const Step& step, const Batch& batch, const Tensor& sums) const {
  constexpr int64_t kLikeliest = 5;
  count_correct(step.output, batch.targets, sums.rows(0, 1).reshape({2}));
  if (many_classes_)
    count_correct(step.output, batch.targets, sums.rows(1, 2).reshape({2}), kLikeliest);
}

}  // namespace wisp
