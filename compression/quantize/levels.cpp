#include "compression/quantize/levels.h"

#include <algorithm>

#include "compression/field_reduce.h"
#include "compression/slices.h"

namespace wisp {
namespace {

constexpr int64_t kRun = 512;  // elements per team if the field has one scale

/// Encodes, one team per group and its scale, or per run of the field.
struct EncodeLevels {
  struct Shared {
    int32_t level[group::kSize];
    group::Codes codes;
  };
  Source source;
  Rounding rounding;
  const Grid* field;  // null: each group has its own scale
  int64_t run;        // elements per team: a group, or kRun
  Norm norm;
  int levels;
  int64_t offset, position;
  float* scales;
  PlanesWriter planes;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t g, Shared& shared) const {
    group::by_kind(source, [&](const Source& kind) { encode(team, kind, g, shared); });
  }
  template <class Team>
  WISP_HD void encode(const Team& team, const Source& kind, int64_t g, Shared& shared) const {
    const int64_t begin = g * run;
    const int64_t size = planes.numel - begin < run ? planes.numel - begin : run;
    const int bits = (1 << planes.width) - 1;
    Grid grid;
    if (field) {
      grid = *field;
    } else {
      float sent;
      grid = levels::sent_grid(levels::scale_of(team, kind, offset + begin, size, norm), levels,
                               &sent);
      team.once([&] { scales[g] = sent; });
    }
    for (int64_t i = begin; i < begin + size; i += group::kSize) {
      levels::take(team, kind, offset + i, position + i, group::size_at(i, begin + size), grid,
                   rounding, [&](int64_t j, int32_t level) { shared.level[j] = level; });
      team.each(group::kSize, [&](int64_t j) {
        shared.codes.code[j] = static_cast<uint8_t>(shared.level[j] & bits);
      });
      planes.store(team, i / group::kSize, shared.codes.code);
    }
  }
};

template <int kWidth>
struct DecodeLevels {
  using Shared = group::Codes;
  PlanesReader<kWidth> planes;
  const float* scales;
  int64_t stride;  // step from group to group in `scales`
  int64_t run;     // elements per team: a group, or kRun
  int levels;
  float weight;
  bool add;
  float* into;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t g, Shared& codes) const {
    const int64_t begin = g * run;
    const int64_t end = planes.numel - begin < run ? planes.numel : begin + run;
    const float step = Grid::of(static_cast<double>(scales[g * stride]), levels).step;
    for (int64_t i = begin; i < end; i += group::kSize) {
      planes.load(team, i / group::kSize, codes.code);
      constexpr int kSign = 1 << (kWidth - 1);
      group::give(
          team, group::size_at(i, end),
          [&](int64_t j) { return static_cast<float>((codes.code[j] ^ kSign) - kSign) * step; },
          weight, add, into + i);
    }
  }
};

struct SetLargest {
  int levels;
  float* scale;
  Grid* grid;
  WISP_HD void operator()(int64_t f, int64_t, float largest) const {
    scale[f] = largest;
    grid[f] = Grid::of(static_cast<double>(largest), levels);
  }
};

struct SetEuclidean {
  int levels;
  float* scale;
  Grid* grid;
  WISP_HD void operator()(int64_t f, int64_t, double squares) const {
    grid[f] = levels::sent_grid(sqrt(squares), levels, scale + f);
  }
};

/// Calls f(std::integral_constant<int, width>), for a width of 2 to 8.
template <int kWidth = 2, class F>
void with_width(int width, const F& f) {
  if constexpr (kWidth < 8) {
    if (width > kWidth) return with_width<kWidth + 1>(width, f);
  }
  f(std::integral_constant<int, kWidth>());
}

}  // namespace

double variance_of_levels(int64_t numel, int levels, Norm norm) {
  const auto n = static_cast<double>(numel);
  const auto s = static_cast<double>(levels);
  if (norm == Norm::euclidean) return std::min(n / (s * s), std::sqrt(n) / s);
  return (std::sqrt(1.0 + (n - 1.0) / (s * s)) - 1.0) / 2.0;
}

int64_t scales_of_fields_bytes(std::span<const Field> fields) {
  return layout_bytes<FieldPartials<double>>(fields);
}

void scales_of_fields(const Stream& stream, const Source& source, std::span<const Field> fields,
                      Norm norm, int levels, std::byte* scratch, float* scale, Grid* grid) {
  if (norm == Norm::largest)
    return reduce_fields(stream, fields, LargestOf{source},
                         lay_out<FieldPartials<float>>(scratch, fields),
                         SetLargest{levels, scale, grid});
  reduce_fields(stream, fields, SquaresOf{source}, lay_out<FieldPartials<double>>(scratch, fields),
                SetEuclidean{levels, scale, grid});
}

int LevelWire::width() const {
  int width = 1;
  while (1 << (width - 1) <= levels) ++width;
  return width;
}

int64_t LevelWire::bytes(int64_t numel) const { return planes_bytes(numel, width()); }

void LevelWire::encode(const Stream& stream, const Source& source, const UnitSpec& spec,
                       const StepInfo& info, bool nearest, const Grid* grids, float* scales,
                       std::byte* planes) const {
  const int64_t run = group > 0 ? group : kRun;
  SmallTeams<EncodeLevels> slices(stream);
  each_slice(spec, [&](size_t f, const Slice& slice, int64_t position) {
    slices.add((slice.numel + run - 1) / run,
               {source,
                {dither_of(info, spec.fields[f]), nearest},
                group > 0 ? nullptr : grids + f,
                run,
                norm,
                levels,
                slice.offset,
                position,
                scales,
                {planes, slice.numel, width()}},
               run);
    scales += groups(slice.numel);
    planes += bytes(slice.numel);
  });
  slices.finish();
}

void LevelWire::decode(const Stream& stream, const UnitSpec& spec, const float* scales,
                       const std::byte* planes, float weight, bool add, float* arena) const {
  const int64_t run = group > 0 ? group : kRun;
  with_width(width(), [&](auto width) {
    SmallTeams<DecodeLevels<width()>> slices(stream);
    each_slice(spec, [&](size_t f, const Slice& slice, int64_t) {
      slices.add((slice.numel + run - 1) / run,
                 {{planes, slice.numel},
                  group > 0 ? scales : scales + f,
                  group > 0 ? 1 : 0,
                  run,
                  levels,
                  weight,
                  add,
                  arena + slice.offset},
                 run);
      scales += groups(slice.numel);
      planes += bytes(slice.numel);
    });
    slices.finish();
  });
}

}  // namespace wisp
