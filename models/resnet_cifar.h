// Residual networks for CIFAR. Source: He et al. 2016, "Deep residual learning for image
// recognition", section 4.2: depth 6n + 2, shortcuts without parameters (option A). One thread.
#pragma once

#include <memory>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "models/model.h"

namespace wisp {

struct ResNetCifarOptions {
  int64_t depth = 20;  // 6n + 2: 20, 32, 44, 56, 110
  double label_smoothing = 0.0;
};

class CifarResNet final : public Model {
 public:
  /// Throws Error for a depth that is not 6n + 2.
  CifarResNet(const ResNetCifarOptions& options, const ModelSetup& setup);
  ~CifarResNet() override;

  Step forward(Context& context, const Batch& batch) override;

 private:
  class Block;

  Variable features(const Variable& images) const;

  double label_smoothing_;
  Conv2d conv_;
  BatchNorm norm_;
  std::vector<std::unique_ptr<Block>> blocks_;
  Linear classifier_;
};

}  // namespace wisp
