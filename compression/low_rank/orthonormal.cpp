#include "compression/low_rank/orthonormal.h"

#include <cmath>

#include "core/loops/parallel_teams.h"

namespace wisp {
namespace {

struct Dot {
  using Value = double;
  const float* a;
  const float* b;
  WISP_HD double identity() const { return 0.0; }
  WISP_HD double map(int64_t i) const {
    return static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  WISP_HD double combine(double x, double y) const { return x + y; }
};

/// Least share of a norm that must be left; a smaller rest is f32 rounding.
constexpr double kDependent = 1e-6;

struct Orthonormalise {
  struct Shared {};
  const Columns* matrices;
  WISP_HD void operator()(const Team& team, int64_t m, Shared&) const {
    const Columns matrix = matrices[m];
    for (int64_t c = 0; c < matrix.count; ++c) {
      for (int pass = 0; pass < 2; ++pass) normalise(team, matrix, c, pass == 0);
    }
  }

 private:
  WISP_HD void normalise(const Team& team, const Columns& matrix, int64_t c, bool draws) const {
    const int64_t length = matrix.length;
    float* column = matrix.column + c * length;
    const double before = team.reduce(length, Dot{column, column});
    for (int64_t j = 0; j < c; ++j) {
      const float* unit = matrix.column + j * length;
      const auto along = static_cast<float>(team.reduce(length, Dot{unit, column}));
      team.each(length, [&](int64_t i) { column[i] -= along * unit[i]; });
    }
    const double after = c > 0 ? team.reduce(length, Dot{column, column}) : before;
    // Also false if a sum is not finite, or if the norm has grown, as a projection only shortens.
    const bool independent = after > kDependent * kDependent * before && after < 2.0 * before;
    const double scale = independent ? 1.0 / sqrt(after) : 0.0;
    team.each(length, [&](int64_t i) {
      column[i] = static_cast<float>(scale * static_cast<double>(column[i]));
    });
    if (independent || !draws) return;
    const int64_t first = matrix.first + c * length;
    team.each(length, [&](int64_t i) {
      column[i] = matrix.random.nearly_normal(static_cast<uint64_t>(first + i));
    });
  }
};

}  // namespace

void orthonormalise(const Stream& stream, const Columns* matrices, int64_t count, int64_t numel) {
  constexpr int64_t kReads = 8;  // reads of each element, or more
  parallel_teams(stream, count, Orthonormalise{matrices}, kReads * numel);
}

}  // namespace wisp
