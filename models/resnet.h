// Residual networks for CIFAR and for ImageNet. Source: He et al. 2016, "Deep residual learning for
// image recognition", sections 3.3 and 4.2. One thread.
#pragma once

#include <deque>
#include <vector>

#include "layers/linear.h"
#include "models/classifier.h"
#include "models/residual_block.h"

namespace wisp {

/// The structure of a residual network.
struct ResNetPlan {
  std::vector<int64_t> blocks;  // number of blocks by stage; stages after the first halve the side
                                // in their first block
  int width = 64;               // channels of the first stage, doubled in each later stage
  bool bottleneck = false;
  Shortcut shortcut = Shortcut::project;
  bool large_stem = true;  // 7 x 7 with stride 2 and a max pool, instead of 3 x 3

  /// Depth 6n + 2: 20, 32, 44, 56, 110. Throws Error for another.
  static ResNetPlan cifar(int64_t depth);
  /// Depth 18, 34, 50, 101 or 152. Throws Error for another.
  static ResNetPlan imagenet(int64_t depth);
};

struct ResNetOptions {
  ClassifierOptions classifier{};
  bool zero_init_residual = false;
};

class ResNet final : public Classifier {
 public:
  ResNet(const ResNetPlan& plan, const Facts& facts, const ResNetOptions& options = {});

  /// torchvision's names: "layer1.0.bn2.weight" for "stage1.block0.norm2.gamma".
  std::vector<std::string> exchange_names(const std::string& name) const override;

 private:
  Variable logits(const Variable& images) const override;

  bool large_stem_;
  Conv2d conv_;
  BatchNorm norm_;
  std::deque<ResidualBlock> blocks_;
  Linear classifier_;
};

}  // namespace wisp
