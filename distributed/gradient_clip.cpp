#include "distributed/gradient_clip.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/loops/parallel_teams.h"
#include "core/train/norm.h"

namespace wisp {
namespace {

double bound_of(const ClipOptions& options, int summands) {
  const double n = summands;
  const bool given = options.local_factor > 0.0;
  return given ? options.norm * options.local_factor / n : options.norm / std::sqrt(n);
}

/// Computes the clipping factor of each range: a segment, with its id as slot.
struct ClipFactors {
  struct Shared {
    double norm = 0.0;  // set by once(), which g++ 12 does not see
  };
  const double* squares;  // indexed by segment
  int64_t segments;
  const Ranges::Range* ranges;
  int64_t count;
  double bound;
  double most_squares;  // largest sum of squares of a segment that counts
  double elements;  // elements of the whole gradient if each segment is clipped by itself, else 0
  double norm;      // norm of the whole gradient; below 0: use the norm of all segments
  double* factors;

  WISP_HD static double down_to(double bound, double norm) {
    return norm > bound ? bound / norm : 1.0;
  }
  WISP_HD void operator()(const Team& team, int64_t, Shared& shared) const {
    team.once([&] {
      shared.norm = norm;
      if (elements > 0.0 || norm >= 0.0) return;
      double total = 0.0;
      for (int64_t id = 0; id < segments; ++id)
        if (squares[id] <= most_squares) total += squares[id];
      shared.norm = std::sqrt(total);
    });
    team.each(count, [&](int64_t at) {
      const Ranges::Range& range = ranges[at];
      const double own = squares[range.slot];
      const bool alone = elements > 0.0;
      const double share = alone ? static_cast<double>(range.numel) / elements : 1.0;
      const double factor = down_to(bound * std::sqrt(share), alone ? std::sqrt(own) : shared.norm);
      factors[range.slot] = own <= most_squares ? factor : 1.0;
    });
  }
};

}  // namespace

GradientClip::GradientClip(Context& context, FlatParameters& parameters, ClipOptions options,
                           int summands, double largest_norm)
    : context_(context),
      parameters_(parameters),
      options_(options),
      bound_(bound_of(options, summands)),
      most_squares_(std::min(largest_norm * largest_norm, std::numeric_limits<double>::max())),
      whole_{.elements = parameters.parameter_count(), .norm = -1.0},
      squares_(context, {static_cast<int64_t>(parameters.segments().size())}, DType::f64),
      factors_(context.empty(squares_.device().shape(), DType::f64)) {}

/// The ranges of these segments, made at the first call.
const Ranges& GradientClip::ranges_of(std::span<const int> segments) {
  std::unique_ptr<Ranges>& made = ranges_[std::vector<int>(segments.begin(), segments.end())];
  if (made) return *made;
  std::vector<Ranges::Range> ranges;
  for (const int id : segments) {
    const Segment& segment = parameters_.segment(id);
    ranges.push_back({segment.offset, segment.numel, id});
  }
  made = std::make_unique<Ranges>(context_.stream, context_.pool, ranges, size_of(DType::f64));
  return *made;
}

void GradientClip::measure(std::span<const int> segments) {
  sums_of_squares(context_.stream, parameters_.grad(), ranges_of(segments),
                  squares_.device().data<double>());
}

bool GradientClip::check(int segment, StepCost& cost) const {
  const double squares = squares_.host().data<double>()[segment];
  if (squares <= most_squares_) return true;  // not so for NaN
  (std::isfinite(squares) ? cost.too_large : cost.nonfinite)
      .push_back(parameters_.segment(segment).name);
  return false;
}

void GradientClip::clip(std::span<const int> segments, const Tensor& squares_arena) {
  if (options_.norm <= 0.0) return;
  const Ranges& ranges = ranges_of(segments);
  auto* factors = factors_.data<double>();
  parallel_teams(context_.stream, 1,
                 ClipFactors{squares_.device().data<double>(), squares_.device().numel(),
                             ranges.table(), ranges.count(), bound_, most_squares_,
                             options_.per_layer ? static_cast<double>(whole_.elements) : 0.0,
                             whole_.norm, factors},
                 ranges.count());
  scale(context_.stream, parameters_.grad(), ranges, factors);
  if (squares_arena.defined()) scale(context_.stream, squares_arena, ranges, factors, true);
}

void GradientClip::clear(int segment) {
  fill_zero(context_.stream,
            FlatParameters::view(parameters_.grad(), parameters_.segment(segment)));
}

}  // namespace wisp
