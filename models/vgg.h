// VGG: 3 x 3 convolutions in five stages, and three linear layers, or one for CIFAR. Source:
// Simonyan and Zisserman 2015, "Very deep convolutional networks for large-scale image
// recognition", section 2. One thread.
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
  int64_t hidden = 4096;    // outputs of the two hidden linear layers; 0: none, as for CIFAR
  bool batch_norm = false;  // a norm behind each convolution

  /// Depth 11, 13, 16 or 19: configuration A, B, D or E of the paper. Throws Error for another.
  static VggPlan of_depth(int64_t depth);
};

struct VggOptions {
  double dropout = 0.5;  // behind each hidden linear layer
  ClassifierOptions classifier{};
};

/// Parameters start as torchvision's do, and have its names except the norms' scale and shift.
/// Images of any size from 32 x 32 are averaged to 7 x 7 positions before the linear layers.
/// Without hidden layers they are averaged to one position, and one linear layer follows.
class Vgg final : public Classifier {
 public:
  Vgg(const VggPlan& plan, const Facts& facts, const VggOptions& options = {});

  /// torchvision's names: "features.1.weight" for "features.1.gamma".
  std::vector<std::string> exchange_names(const std::string& name) const override {
    return {pytorch_name(name)};
  }

 private:
  Variable logits(const Variable& images) const override;
  void add_linear(const std::string& name, int64_t in, int64_t out);

  const VggPlan plan_;
  Dropout first_dropout_, second_dropout_;
  std::deque<Conv2d> convolutions_;
  std::deque<BatchNorm> norms_;  // one for each convolution, or none
  std::deque<Linear> linear_;
};

}  // namespace wisp
