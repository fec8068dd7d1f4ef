// The loss and the metrics of models that give each sample one class. One thread.
#pragma once

#include "models/model.h"

namespace wisp {

class Classifier : public Model {
 public:
  /// `label_smoothing` is that of cross_entropy().
  Classifier(int64_t classes, double label_smoothing);

  /// The accuracy. With more than 10 classes also the top-5 accuracy, the share of samples whose
  /// class is among the five likeliest.
  std::vector<Metric> metrics() const override;
  void measure(const Step& step, const Batch& batch, const Tensor& sums) const override;

 protected:
  /// The step of logits (N, classes).
  Step classified(const Variable& logits, const Batch& batch) const;

 private:
  bool many_classes_;
  double label_smoothing_;
};

}  // namespace wisp
