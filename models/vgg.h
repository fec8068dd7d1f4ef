// VGG: 3 x 3 convolutions in five stages, and three linear layers. Source: Simonyan and Zisserman
// 2015, "Very deep convolutional networks for large-scale image recognition", section 2. One
// thread.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/linear.h"
#include "models/classifier.h"

namespace wisp {

/// The structure of a VGG.
struct VggPlan {
  std::vector<int64_t> convolutions;  // number of convolutions by stage
  int width = 64;  // channels of the first stage, doubled in each later stage up to eightfold
  int64_t hidden = 4096;    // outputs of the hidden linear layers
  bool batch_norm = false;  // a norm behind each convolution

  /// Depth 11, 13, 16 or 19: configuration A, B, D or E of the paper. Throws Error for another.
  static VggPlan of_depth(int64_t depth);
};

struct VggOptions {
  double dropout = 0.5;  // behind each hidden linear layer
  double label_smoothing = 0.0;
};

/// Parameters start as torchvision's do, and have its names except the norms' scale and shift.
/// Images of any size from 32 x 32 are averaged to 7 x 7 positions before the linear layers.
class Vgg final : public Classifier {
 public:
  Vgg(const VggPlan& plan, const Facts& facts, const VggOptions& options = {});

  Step forward(Context& context, const Batch& batch, const Carry& before) override;
  /// torchvision's names: "features.1.weight" for "features.1.gamma".
  std::vector<std::string> exchange_names(const std::string& name) const override;

 private:
  int add_stage(int64_t convolutions, int in, int out, int place);
  Variable features(Variable x) const;

  const VggPlan plan_;
  Dropout first_dropout_, second_dropout_;
  std::deque<Conv2d> convolutions_;
  std::deque<BatchNorm> norms_;  // one for each convolution, or none
  std::deque<Linear> linear_;
};

}  // namespace wisp
