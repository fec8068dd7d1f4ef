// Adam with decoupled weight decay over the flat arenas. One object per worker, used by its compute
// thread.
#pragma once

#include "core/io/config.h"
#include "core/train/optimizer.h"

namespace wisp {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;  // λ of segments with decay: takes lr · λw off them

  /// Binds the keys "optimizer.…" of AdamW alone and checks them.
  static AdamWOptions bind(Config& config);
};

class AdamW final : public Optimizer {
 public:
  /// Keeps its moments in the arenas "momentum" (where a compressor finds it) and "second_moment".
  /// `parameters` outlives the optimizer. Throws Error for options out of range.
  AdamW(FlatParameters& parameters, AdamWOptions options);

  /// For each segment, by its rule, with gradient g, weight w, moments m and v, t = `number`, and s
  /// the number of v's last update, or t if it had none:
  ///   gradient: m = β1 m + (1 - β1) g; v = β2 v + (1 - β2) g²;
  ///             w = w - lr λ w - lr · m / (1 - β1ᵗ) / (√(v / (1 - β2ˢ)) + ε), s = t
  ///   momentum: the same w with m = g, v and s as they are. A v that froze in fewer than some
  ///             1 / (1 - β2) updates is the mean of as few gradients.
  ///   update:   w -= lr · g
  /// Source: Loshchilov & Hutter 2019, algorithm 2 (here the learning rate scales the decay too, as
  /// in PyTorch's AdamW); momentum: Tang et al. 2021, "1-bit Adam", algorithm 1 (there without
  /// corrections).
  void step(const Context& context, double lr, int64_t number,
            std::span<const UpdateRule> rules) override;
  std::vector<std::string> arenas() const override;
  std::vector<SavedState> counters() const override;

 private:
  FlatParameters& parameters_;
  AdamWOptions options_;
  Tensor second_number_;  // (segments) i64: updates of the second moment
};

}  // namespace wisp
