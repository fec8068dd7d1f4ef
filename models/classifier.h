// The loss and the metrics of models that give each sample one class. One thread.
#pragma once

#include "models/model.h"

namespace wisp {

struct ClassifierOptions {
  double label_smoothing = 0.0;  // share of the target spread over all classes, in [0, 1)
  double mixup = 0.0;            // training: alpha of mixup_shares(); 0: samples are not mixed
};

/// Binds the keys model.label_smoothing and model.mixup. Throws Error with file:line for values out
/// of range.
ClassifierOptions bind_classifier(Config& config);

class Classifier : public Model {
 public:
  Classifier(int64_t classes, const ClassifierOptions& options);

  Step forward(Context& context, const Batch& batch, const Carry& before) final;
  /// The accuracy. With more than 10 classes also the top-5 accuracy, the share of samples whose
  /// class is among the five likeliest. Of mixed samples the class with the larger share counts.
  std::vector<Metric> metrics() const override;
  void measure(const Step& step, const Batch& batch, const Tensor& sums) const override;

 protected:
  /// The logits (N, classes), f32 or f64, of a batch's first input.
  virtual Variable logits(const Variable& input) const = 0;

 private:
  const bool many_classes_;
  const ClassifierOptions options_;
};

}  // namespace wisp
