// A residual block of two or three convolutions and a shortcut. Source: He et al. 2016, "Deep
// residual learning for image recognition", figure 5. The bottleneck's stride is in its 3 x 3
// convolution (Gross & Wilber 2016, fb.resnet.torch). One thread.
#pragma once

#include <deque>
#include <optional>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"

namespace wisp {

/// The shortcut of a block whose output has another shape than its input. pad: zero channels
/// (option A). project: a 1 x 1 convolution and a norm (option B).
enum class Shortcut { pad, project };

struct ResidualBlockOptions {
  int64_t stride = 1;
  bool bottleneck = false;  // 1 x 1, 3 x 3 and 1 x 1 to four times the width, instead of two 3 x 3
  Shortcut shortcut = Shortcut::project;
  bool zero_init = false;  // the last norm's scale starts at 0, so the block starts as its shortcut
};

/// Computes relu(norm(conv(… relu(norm(conv(x))))) + shortcut(x)).
class ResidualBlock final : public Module {
 public:
  static constexpr int kExpansion = 4;  // a bottleneck's output channels / width

  ResidualBlock(int in, int width, const ResidualBlockOptions& options);

  int out_channels() const { return out_; }
  Variable operator()(const Variable& x) const;

 private:
  void add(int in, int out, int kernel, int64_t stride, double scale = 1.0);
  Variable shortcut(const Variable& x) const;

  int out_;
  int64_t stride_;
  bool same_shape_;
  std::deque<Conv2d> convs_;
  std::deque<BatchNorm> norms_;  // one for each of convs_
  std::optional<Conv2d> projection_;
  std::optional<BatchNorm> projection_norm_;
};

}  // namespace wisp
