#include "compression/low_rank/orthonormal.h"

#include <cmath>

#include "core/parallel.h"

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

/// Device words of a column under way.
struct Column {
  double before, after;  // squares of its norm, without and with the projections taken away
  double along;          // its component along another column
  double scale;
  int64_t drawn;  // how many of its elements are drawn: all or none
};

struct Project {
  const float* unit;
  const Column* state;
  float* column;
  WISP_HD void operator()(int64_t i) const {
    column[i] -= static_cast<float>(state->along) * unit[i];
  }
};

/// A norm of which less than this is left is f32 rounding.
constexpr double kDependent = 1e-6;

struct Judge {
  Column* state;
  int64_t numel;
  WISP_HD void operator()() const {
    // false, too, of what is infinite or no number, or became so: projections shorten
    const bool independent = state->after > kDependent * kDependent * state->before &&
                             state->after < 2.0 * state->before;
    state->scale = independent ? 1.0 / sqrt(state->after) : 0.0;
    state->drawn = independent ? 0 : numel;
  }
};

struct Normalise {
  const Column* state;
  float* column;
  WISP_HD void operator()(int64_t i) const {
    column[i] = static_cast<float>(state->scale * static_cast<double>(column[i]));
  }
};

struct Draw {
  Philox random;
  int64_t first;
  float* column;
  WISP_HD void operator()(int64_t i) const {
    column[i] = random.nearly_normal(static_cast<uint64_t>(first + i));
  }
};

}  // namespace

int64_t orthonormal_scratch_bytes() { return sizeof(Column); }

void orthonormalise(const Stream& stream, const Tensor& columns, const Philox& random,
                    int64_t first, std::byte* scratch) {
  auto* state = reinterpret_cast<Column*>(scratch);
  const int64_t numel = columns.shape()[1];
  for (int64_t c = 0; c < columns.shape()[0]; ++c) {
    float* column = columns.data<float>() + c * numel;
    for (int pass = 0; pass < 2; ++pass) {
      parallel_reduce(stream, numel, Dot{column, column}, &state->before);
      for (int64_t j = 0; j < c; ++j) {
        const float* unit = columns.data<float>() + j * numel;
        parallel_reduce(stream, numel, Dot{unit, column}, &state->along);
        parallel_for(stream, numel, Project{unit, state, column});
      }
      parallel_reduce(stream, numel, Dot{column, column}, &state->after);
      run_once(stream, Judge{state, numel});
      parallel_for(stream, numel, Normalise{state, column});
      if (pass == 0)
        parallel_for_counted(stream, &state->drawn, numel, Draw{random, first + c * numel, column});
    }
  }
}

}  // namespace wisp
