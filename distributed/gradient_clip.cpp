#include "distributed/gradient_clip.h"

#include <cmath>

#include "core/train/norm.h"

namespace wisp {
namespace {

/// Factor that brings `norm` down to `bound`.
double clip_factor(double norm, double bound) { return norm > bound ? bound / norm : 1.0; }

/// Above it sums of gradients over workers and steps may leave f32.
constexpr double kLargestNorm = 0x1p96;

double bound_of(const ClipOptions& options, int summands) {
  const double n = summands;
  const bool given = options.local_factor > 0.0;
  return given ? options.norm * options.local_factor / n : options.norm / std::sqrt(n);
}

Tensor gradient_of(const FlatParameters& parameters, int segment) {
  return FlatParameters::view(parameters.grad(),
                              parameters.segments()[static_cast<size_t>(segment)]);
}

}  // namespace

GradientClip::GradientClip(Context& context, FlatParameters& parameters, ClipOptions options,
                           int summands)
    : context_(context),
      parameters_(parameters),
      options_(options),
      bound_(bound_of(options, summands)),
      elements_(parameters.parameter_count()),
      squares_(context, {static_cast<int64_t>(parameters.segments().size())}, DType::f64) {}

/// Made at the first call for these segments.
const Ranges& GradientClip::ranges_of(std::span<const int> segments) {
  std::unique_ptr<Ranges>& made = ranges_[std::vector<int>(segments.begin(), segments.end())];
  if (made) return *made;
  std::vector<Ranges::Range> ranges;
  for (const int id : segments) {
    const Segment& segment = parameters_.segments()[static_cast<size_t>(id)];
    ranges.push_back({segment.offset, segment.numel, id});
  }
  made = std::make_unique<Ranges>(context_, ranges, size_of(DType::f64));
  return *made;
}

void GradientClip::measure(std::span<const int> segments) {
  sums_of_squares(context_.stream, parameters_.grad(), ranges_of(segments),
                  squares_.device().data<double>());
  squares_.fetch(context_.stream);
}

bool GradientClip::finite(int segment) const {
  return squares_.host().data<double>()[segment] <= kLargestNorm * kLargestNorm;  // false for NaN
}

void GradientClip::clip(std::span<const int> segments, const Tensor& squares_arena) {
  if (options_.norm <= 0.0) return;
  const double* squares = squares_.host().data<double>();
  double total = 0.0;
  if (!options_.per_layer) {
    for (const Segment& segment : parameters_.segments()) {
      if (std::isfinite(squares[segment.id])) total += squares[segment.id];
    }
  }
  for (const int id : segments) {
    if (!std::isfinite(squares[id])) continue;
    const Segment& segment = parameters_.segments()[static_cast<size_t>(id)];
    const double share = static_cast<double>(segment.numel) / static_cast<double>(elements_);
    const double factor = options_.per_layer
                              ? clip_factor(std::sqrt(squares[id]), bound_ * std::sqrt(share))
                              : clip_factor(std::sqrt(total), bound_);
    if (factor == 1.0) continue;
    scale(context_.stream, gradient_of(parameters_, id), factor);
    if (squares_arena.defined())
      scale(context_.stream, FlatParameters::view(squares_arena, segment), factor * factor);
  }
}

void GradientClip::clear(int segment) {
  fill_zero(context_.stream, gradient_of(parameters_, segment));
}

}  // namespace wisp
