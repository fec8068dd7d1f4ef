// The check and the clipping of a gradient: a worker's own before it is encoded, or the mean of all
// before it is applied. Values that are not finite, or too large, are found. Belongs to the thread
// of its context.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/device_words.h"
#include "core/loops/ranges.h"
#include "core/parameter.h"

namespace wisp {

enum class ClipWhere { automatic, local, mean };

struct ClipOptions {
  double norm = 0.0;       // bound of the mean gradient's L2 norm; 0: no clipping
  bool per_layer = false;  // each segment by itself, bound · sqrt(its share of the elements)
  ClipWhere where =
      ClipWhere::automatic;   // local: each worker's own gradient, before it is encoded
  double local_factor = 0.0;  // bound of a worker's own gradient / norm; 0: sqrt(workers)
};

/// A gradient of which the segments here are a part.
struct WholeGradient {
  int64_t elements = 0;
  double norm = 0.0;  // of what is measured: of a worker's share, if shares are
};

class GradientClip {
 public:
  /// `summands`: the gradient is one of so many whose sum is the mean over workers (1: it is the
  /// mean). Such a share is clipped at norm · local_factor / summands; the factor sqrt(summands) is
  /// that of Lin et al. 2018, section 3.3, where independent gradients add up to one of `norm`.
  /// A segment of more than `largest_norm` counts as zero: sums of what is larger over workers and
  /// steps could leave f32.
  GradientClip(Context& context, FlatParameters& parameters, ClipOptions options, int summands,
               double largest_norm = kLargestNorm);
  static constexpr double kLargestNorm = 0x1p96;

  /// From now on the parameters are a part of this gradient: bounds are shares of its elements, and
  /// its norm stands in the place of theirs. Between steps.
  void part_of(const WholeGradient& whole) { whole_ = whole; }
  /// Measures the segments, in the stream's order.
  void measure(std::span<const int> segments);
  /// What was measured is known to the host when the stream has come here.
  void fetch() const { squares_.fetch(context_.stream); }
  /// False if the segment is to count as zero: it is not finite(), or its norm is too large. As of
  /// the last fetch().
  bool usable(int segment) const;
  /// Whether the sum of the segment's squares is finite: of f32, whether all its numbers are.
  bool finite(int segment) const;
  /// Scales the segments by the rule: each by its own norm, or all by the norm of the whole
  /// gradient (which must have been measured); `squares`, if defined, is an arena of sums of
  /// squared gradients that follows. Segments that count as zero are left alone, and in no norm.
  /// In the stream's order: the host decides nothing.
  void clip(std::span<const int> segments, const Tensor& squares = {});
  void clear(int segment);
  bool enabled() const { return options_.norm > 0.0; }
  /// Whether clipping needs the norm of the whole gradient before the first segment can be encoded.
  bool needs_whole_norm() const { return options_.norm > 0.0 && !options_.per_layer; }

 private:
  const Ranges& ranges_of(std::span<const int> segments);

  Context& context_;
  FlatParameters& parameters_;
  ClipOptions options_;
  double bound_;         // of what is measured
  double most_squares_;  // of a segment that does not count as zero
  WholeGradient whole_;  // norm below 0: that of the parameters, as measured
  DeviceWords squares_;  // (segments) f64: sum of squares of each
  Tensor factors_;       // (segments) f64: of those that are clipped
  std::map<std::vector<int>, std::unique_ptr<Ranges>> ranges_;  // of what is measured together
};

}  // namespace wisp
