// Numbers as whole levels of a scale: level q, -levels <= q <= levels, stands for q · scale /
// levels. What qsgd, terngrad, int8 and int4 have in common: the grid of a scale, the rounding to
// it, and levels as two's complement codes in planes.
#pragma once

#include <cmath>

#include "compression/quantize/group.h"
#include "compression/quantize/rounding.h"

namespace wisp {

/// The levels of a scale. A scale below 2^-90 (or none: NaN) counts as zero, and what it belongs to
/// becomes zeros; beyond 2^126 it saturates, and what it belongs to shrinks with it. So no code of
/// a level is infinite, whatever a sender says.
struct Grid {
  float per_unit;  // fixed-point levels (Rounding) per unit of the numbers
  float most;      // fixed-point level that numbers are clipped to
  float step;      // units per level

  WISP_HD static Grid of(double scale, int levels) {
    if (!(scale >= 0x1p-90)) return {0.0f, 0.0f, 0.0f};
    const double sent = scale < 0x1p126 ? scale : 0x1p126;
    return {static_cast<float>(0x1p23 * levels / scale), 0x1p23f * static_cast<float>(levels),
            static_cast<float>(sent / levels)};
  }
};

/// Which scale numbers have: max |x|, or |x| in L2.
enum class Norm { largest, euclidean };

/// The largest E|Q(x) - x|² / |x|² over all x of `numel` elements with a scale of their own. L2:
/// Alistarh et al. 2017: min(n / s², sqrt(n) / s) for s levels. Maximum (ours): the
/// worst x has one element at the scale, where the error is 0, and all others at a < 1 levels: the
/// error is (n - 1) a (1 - a) of s² + (n - 1) a², at most (sqrt(1 + (n - 1) / s²) - 1) / 2.
double variance_of_levels(int64_t numel, int levels, Norm norm);

/// scale[f] = the field's, grid[f] = the grid to encode with, for each field. `scratch` has
/// scales_of_fields_bytes() bytes.
void scales_of_fields(const Stream& stream, const Source& source, std::span<const Field> fields,
                      Norm norm, int levels, std::byte* scratch, float* scale, Grid* grid);
int64_t scales_of_fields_bytes(std::span<const Field> fields);

/// Levels in planes; a level has a sign bit and ceil(log2(levels + 1)) others.
struct LevelWire {
  int levels = 1;     // up to 127
  int64_t group = 0;  // elements that share a scale, a multiple of 64; the last group of a slice
                      // may be shorter; 0: the field has one scale
  Norm norm = Norm::largest;  // of groups

  int width() const;
  int64_t bytes(int64_t numel) const;  // of the planes
  int64_t groups(int64_t numel) const { return group > 0 ? (numel + group - 1) / group : 0; }

  /// With groups, writes each group's scale to `scales`, of all slices; else numbers are rounded to
  /// the grids of the fields. `nearest` is of Rounding. Planes lie slice behind slice.
  void encode(const Stream& stream, const Source& source, const UnitSpec& spec,
              const StepInfo& info, bool nearest, const Grid* grids, float* scales,
              std::byte* planes) const;
  /// Writes weight * decoded to the slices of `arena`, or adds it. Any bytes give finite numbers.
  /// Without groups, `scales` are the fields'.
  void decode(const Stream& stream, const UnitSpec& spec, const float* scales,
              const std::byte* planes, float weight, bool add, float* arena) const;
};

namespace levels {

/// The scale of a range of the arena.
template <class Team>
WISP_HD inline double scale_of(const Team& team, const Source& source, int64_t at, int64_t size,
                               Norm norm) {
  if (norm == Norm::largest) {
    typename Team::template PerLane<int32_t> lane;
    group::each_group(source, at, size, [&](const auto& x) {
      team.lanes([&](int64_t j) { group::gather<group::Max>(lane, j, x, group::MagnitudeBits()); });
    });
    return float_from_bits(static_cast<uint32_t>(team.fold(lane, group::Max())));
  }
  typename Team::template PerLane<double> lane;
  group::each_group(source, at, size, [&](const auto& x) {
    team.lanes([&](int64_t j) { group::gather<group::Add>(lane, j, x, group::Square()); });
  });
  return sqrt(team.fold(lane, group::Add()));
}
WISP_HD inline double scale_of(const Source& source, int64_t at, int64_t size, Norm norm) {
  return scale_of(LoneThread(), source, at, size, norm);
}

/// A scale as it travels, and its grid: the sender rounds to the levels that the receiver knows.
WISP_HD inline Grid sent_grid(double scale, int levels, float* sent) {
  constexpr float kLargest = 0x1.fffffep127f;
  *sent = scale < static_cast<double>(kLargest) ? static_cast<float>(scale) : kLargest;
  return Grid::of(*sent < kLargest ? static_cast<double>(*sent) : scale, levels);
}

/// Rounds the numbers at [at, at + size) of the arena to levels, and settles what is sent of them:
/// put(j, level) for each of 64, in any order, those behind the last being 0. `position` is theirs
/// in the field.
template <class Team, class Put>
WISP_HD inline void take(const Team& team, const Source& source, int64_t at, int64_t position,
                         int64_t size, const Grid& grid, const Rounding& rounding, const Put& put) {
  group::prefetch(source, at);
  rounding.each(team, position, size, [&](int64_t j, uint32_t random) {
    const float x = source.peek(at + j);
    float fixed = x * grid.per_unit;
    fixed = fixed > -grid.most ? fixed : -grid.most;
    fixed = fixed < grid.most ? fixed : grid.most;
    const int32_t level = Rounding::round(static_cast<int32_t>(fixed), random);
    source.settle(at + j, x, static_cast<float>(level) * grid.step);
    put(j, level);
  });
  if (size < group::kSize) team.each(group::kSize - size, [&](int64_t j) { put(size + j, 0); });
}
template <class Put>
WISP_HD inline void take(const Source& source, int64_t at, int64_t position, int64_t size,
                         const Grid& grid, const Rounding& rounding, const Put& put) {
  take(LoneThread(), source, at, position, size, grid, rounding, put);
}

}  // namespace levels
}  // namespace wisp
