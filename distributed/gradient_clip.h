// The check of a gradient for values that are not finite or too large, and its clipping: each
// worker's own before encoding, or the mean before the update. For the thread of its context.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/device_words.h"
#include "core/loops/ranges.h"
#include "core/parameter.h"
#include "distributed/exchange/step_cost.h"

namespace wisp {

/// The clipped gradient. automatic: the mean if decoding gives it up to rounding, else local.
enum class ClipWhere { automatic, local, mean };

struct ClipOptions {
  double norm = 0.0;       // bound of the mean gradient's L2 norm; 0: no clipping
  bool per_layer = false;  // each segment by itself, at bound · sqrt(its share of the elements)
  ClipWhere where = ClipWhere::automatic;  // local: each worker's own gradient, before encoding
  double local_factor = 0.0;  // bound of a worker's own gradient is this · norm; 0: sqrt(workers)
};

/// A gradient that contains the segments of these parameters.
struct WholeGradient {
  int64_t elements = 0;
  double norm = 0.0;  // of what is measured: the gradient, or a worker's share
};

class GradientClip {
 public:
  /// `summands` is the number of gradients like this one whose sum is the mean; 1 for the mean
  /// itself. A gradient is clipped at norm · local_factor / summands. With the default factor,
  /// sqrt(summands), independent gradients add up to one of `norm` (Lin et al. 2018, section 3.3).
  /// A segment whose norm exceeds `largest_norm` counts as zero, because sums of larger numbers
  /// over workers and steps could overflow f32.
  GradientClip(Context& context, FlatParameters& parameters, ClipOptions options, int summands,
               double largest_norm = kLargestNorm);
  static constexpr double kLargestNorm = 0x1p96;

  /// Declares the parameters to be a part of `whole`, from now on: bounds are shares of its
  /// elements, and its norm replaces that of the parameters. Call between steps.
  void part_of(const WholeGradient& whole) { whole_ = whole; }
  /// Measures the segments, in the order of the stream.
  void measure(std::span<const int> segments);
  /// Fetches the measurements to the host, in the order of the stream.
  void fetch() const { squares_.fetch(context_.stream); }
  /// False if the segment counts as zero: its sum of squares is not finite (in f32: a number is
  /// not), or its norm is too large. Its name is then appended to cost.nonfinite or cost.too_large.
  /// Uses the last fetch().
  bool check(int segment, StepCost& cost) const;
  /// Scales the segments: each by its own norm, or all by the norm of the whole gradient, which
  /// must be measured. `squares`, if defined, is an arena with sums of squared gradients that is
  /// scaled too. Segments that count as zero are not scaled and enter no norm. Runs in the order of
  /// the stream, and the host decides nothing.
  void clip(std::span<const int> segments, const Tensor& squares = {});
  void clear(int segment);
  bool enabled() const { return options_.norm > 0.0; }
  /// Whether the norm of the whole gradient is needed before the first segment can be encoded.
  bool needs_whole_norm() const { return options_.norm > 0.0 && !options_.per_layer; }

 private:
  const Ranges& ranges_of(std::span<const int> segments);

  Context& context_;
  FlatParameters& parameters_;
  ClipOptions options_;
  double bound_;         // bound of the measured norm
  double most_squares_;  // largest sum of squares of a segment that does not count as zero
  WholeGradient whole_;  // norm below 0: use the measured norm of the parameters
  DeviceWords squares_;  // (segments) f64: sum of squares of each segment
  Tensor factors_;       // (segments) f64: factors of clipped segments
  std::map<std::vector<int>, std::unique_ptr<Ranges>> ranges_;  // by the segments measured together
};

}  // namespace wisp
