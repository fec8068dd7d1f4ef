// AlexNet: five convolutions and three linear layers. Sources: Krizhevsky et al. 2012, "ImageNet
// classification with deep convolutional neural networks"; Krizhevsky 2014, "One weird trick for
// parallelizing convolutional neural networks". One thread.
#pragma once

#include <array>
#include <deque>

#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/linear.h"
#include "models/classifier.h"

namespace wisp {

/// The structure of an AlexNet.
struct AlexNetPlan {
  std::array<int, 5> channels = {64, 192, 384, 256, 256};  // by convolution
  int64_t groups = 1;                                      // groups of convolutions 2, 4 and 5
  int64_t hidden = 4096;                                   // outputs of the hidden linear layers

  /// 1: torchvision's network, after Krizhevsky 2014. 2: the network of 2012, which is wider and
  /// whose groups were on two GPUs. Throws Error for another number.
  static AlexNetPlan of_groups(int64_t groups);
};

struct AlexNetOptions {
  double dropout = 0.5;  // before each hidden linear layer
  ClassifierOptions classifier{};
};

/// Parameters have torchvision's names. Without groups they start as torchvision's; with groups as
/// in section 5 of the paper: weights normal with deviation 0.01, and biases 1 in the grouped
/// convolutions and the hidden layers, else 0. Local response normalisation is left out. Images of
/// any size from 63 x 63 are averaged to 6 x 6 positions before the linear layers.
class AlexNet final : public Classifier {
 public:
  AlexNet(const AlexNetPlan& plan, const Facts& facts, const AlexNetOptions& options = {});

 private:
  Variable logits(const Variable& images) const override;
  Dropout first_dropout_, second_dropout_;
  std::deque<Conv2d> convolutions_;
  std::deque<Linear> linear_;
};

}  // namespace wisp
