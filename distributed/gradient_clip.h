// What happens to a gradient before it is encoded (the worker's own) or applied (the mean of all):
// it is checked for non-finite values and clipped. Belongs to the thread of its context.
#pragma once

#include <span>
#include <vector>

#include "core/parameter.h"

namespace wisp {

struct ClipOptions {
  double norm = 0.0;       // bound of the whole gradient's L2 norm; 0: no clipping
  bool per_layer = false;  // each segment by itself, bound · sqrt(its share of the elements)
};

class GradientClip {
 public:
  /// `options.norm` bounds the mean gradient. A worker's own share of it is clipped at norm ·
  /// workers^-1/2 (Lin et al. 2018, section 3.3); for the mean itself, workers is 1.
  GradientClip(Context& context, FlatParameters& parameters, ClipOptions options, int workers);

  /// Measures the segments; their norms are known after the stream was synchronised.
  void measure(std::span<const int> segments);
  bool finite(int segment) const;
  /// Scales the segments by the rule: each by its own norm, or all by the norm of the whole
  /// gradient (which must have been measured). Non-finite segments are left alone.
  void clip(std::span<const int> segments);
  void clear(int segment);
  bool enabled() const { return options_.norm > 0.0; }
  /// Whether clipping needs the norm of the whole gradient before the first segment can be encoded.
  bool needs_whole_norm() const { return options_.norm > 0.0 && !options_.per_layer; }

 private:
  Context& context_;
  FlatParameters& parameters_;
  ClipOptions options_;
  double bound_;
  int64_t elements_;
  Tensor squares_;  // (segments) f64: sum of squares of each
};

}  // namespace wisp
