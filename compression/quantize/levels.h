// Numbers as integer levels of a scale: level q, -levels <= q <= levels, stands for q · scale /
// levels. The methods qsgd, terngrad, int8 and int4 share this grid, the rounding to it, and planes
// of levels as two's complement codes. Values; any thread.
#pragma once

#include <cmath>

#include "compression/quantize/group.h"
#include "compression/quantize/rounding.h"

namespace wisp {

/// The levels of a scale. A scale below 2^-90 (or NaN) counts as zero, and its numbers become
/// zeros. A scale beyond 2^126 saturates, and its numbers shrink with it. So every received code
/// decodes to a finite number.
struct Grid {
  float per_unit;  // fixed-point levels (Rounding) per unit of the numbers
  float most;      // largest fixed-point level; numbers are clipped to it
  float step;      // units per level

  WISP_HD static Grid of(double scale, int levels) {
    if (!(scale >= 0x1p-90)) return {0.0f, 0.0f, 0.0f};
    const double sent = scale < 0x1p126 ? scale : 0x1p126;
    return {static_cast<float>(0x1p23 * levels / scale), 0x1p23f * static_cast<float>(levels),
            static_cast<float>(sent / levels)};
  }
};

/// The scale of numbers: max |x|, or their L2 norm.
enum class Norm { largest, euclidean };

/// The largest E|Q(x) - x|² / |x|² over all x of `numel` elements with their own scale. L2: min(n /
/// s², sqrt(n) / s) for s levels (Alistarh et al. 2017). Maximum (ours): the worst x has one
/// element at the scale, with error 0, and all others at a < 1 levels. The error is then (n - 1) a
/// (1 - a) of s² + (n - 1) a², at most (sqrt(1 + (n - 1) / s²) - 1) / 2.
double variance_of_levels(int64_t numel, int levels, Norm norm);

/// For each field f, scale[f] = its scale and grid[f] = the grid for encoding. `scratch` has
/// scales_of_fields_bytes() bytes.
void scales_of_fields(const Stream& stream, const Source& source, std::span<const Field> fields,
                      Norm norm, int levels, std::byte* scratch, float* scale, Grid* grid);
int64_t scales_of_fields_bytes(std::span<const Field> fields);

/// Levels in planes. A level has a sign bit and ceil(log2(levels + 1)) more bits.
struct LevelWire {
  int levels = 1;     // up to 127
  int64_t group = 0;  // elements that share a scale, a multiple of 64; the last group of a slice
                      // may be shorter; 0: one scale per field
  Norm norm = Norm::largest;  // norm that gives a group's scale

  int width() const;
  int64_t bytes(int64_t numel) const;  // bytes of the planes
  int64_t groups(int64_t numel) const { return group > 0 ? (numel + group - 1) / group : 0; }

  /// Writes the planes of all slices in order. With groups, rounds each group to its own scale and
  /// writes it to `scales`, through all slices; without, rounds to the fields' grids. `nearest`
  /// selects Rounding::nearest.
  void encode(const Stream& stream, const Source& source, const UnitSpec& spec,
              const StepInfo& info, bool nearest, const Grid* grids, float* scales,
              std::byte* planes) const;
  /// Writes weight * decoded to the slices of `arena`, or adds it if `add`. Any bytes decode to
  /// finite numbers. Without groups, `scales` has one entry per field.
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

/// Grid of a scale after the rounding of *sent, so that sender and receiver use the same levels.
WISP_HD inline Grid sent_grid(double scale, int levels, float* sent) {
  constexpr float kLargest = 0x1.fffffep127f;
  *sent = scale < static_cast<double>(kLargest) ? static_cast<float>(scale) : kLargest;
  return Grid::of(*sent < kLargest ? static_cast<double>(*sent) : scale, levels);
}

/// Rounds the arena range [at, at + size) to levels, and settles the parts that are sent. Calls
/// put(j, level) for each of 64 elements in any order; the level is 0 behind the range. `position`
/// is the field position of the range.
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

}  // namespace levels
}  // namespace wisp
