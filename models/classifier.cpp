#include "models/classifier.h"

#include "core/ops.h"

namespace wisp {

Classifier::Classifier(int64_t classes, double label_smoothing)
    : many_classes_(classes > 10), label_smoothing_(label_smoothing) {}

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

Step Classifier::classified(const Variable& logits, const Batch& batch) const {
  return {cross_entropy(logits, batch.targets, label_smoothing_), logits};
}

}  // namespace wisp
