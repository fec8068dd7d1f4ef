#include "compression/low_rank.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compression/wire_value.h"
#include "core/backend.h"
#include "core/norm.h"
#include "core/parallel.h"
#include "core/random.h"

namespace wisp {
namespace {

struct Take {
  const float* gradient;
  float gain;
  float* residual;
  WISP_HD void operator()(int64_t i) const { residual[i] = gain * residual[i] + gradient[i]; }
};

struct Subtract {
  const float* from;
  float factor;
  float* into;
  WISP_HD void operator()(int64_t i) const { into[i] -= factor * from[i]; }
};

template <class T>
struct Send {
  float* factor;
  float limit;  // of a worker's number, so that the sum of all does not overflow T
  T* out;
  WISP_HD void operator()(int64_t i) const {
    const float number = factor[i];
    const float low = number < -limit ? -limit : number;
    const T value = to_wire<T>(low > limit ? limit : low);
    out[i] = value;
    factor[i] = -static_cast<float>(value);
  }
};

template <class T>
struct Receive {
  const T* in;
  float* factor;
  WISP_HD void operator()(int64_t i) const { factor[i] = static_cast<float>(in[i]); }
};

// ---------------------------------------------------------------- modified Gram-Schmidt

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
    // false, too, of what is infinite or no number
    const bool independent = state->after > kDependent * kDependent * state->before;
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

/// Column `c` of (numel, …) against those before it. The second pass takes away what rounding left
/// of them in the first ("twice is enough": Giraud et al. 2005), or makes a drawn column
/// orthonormal.
void orthonormalise_column(const Stream& stream, float* columns, int64_t numel, int64_t c,
                           const Draw& draw, Column* state) {
  float* column = columns + c * numel;
  for (int pass = 0; pass < 2; ++pass) {
    parallel_reduce(stream, numel, Dot{column, column}, &state->before);
    for (int64_t j = 0; j < c; ++j) {
      const float* unit = columns + j * numel;
      parallel_reduce(stream, numel, Dot{unit, column}, &state->along);
      parallel_for(stream, numel, Project{unit, state, column});
    }
    parallel_reduce(stream, numel, Dot{column, column}, &state->after);
    run_once(stream, Judge{state, numel});
    parallel_for(stream, numel, Normalise{state, column});
    if (pass == 0) parallel_for_counted(stream, &state->drawn, numel, draw);
  }
}

DType bind_values(const std::string& method, Config& config) {
  std::string values = "f32";
  config.bind("compression.values", values, "how the factors travel: f32, f16 or bf16");
  WISP_CHECK(values != "natural", config.where("compression.values"), ": ", method,
             " sums its factors on the wire, and a sum of natural values is none; use f32, f16 or "
             "bf16");
  WISP_CHECK(values == "f32" || values == "f16" || values == "bf16",
             config.where("compression.values"), ": compression.values is '", values,
             "', expected f32, f16 or bf16");
  if (values == "f32") return DType::f32;
  return values == "f16" ? DType::f16 : DType::bf16;
}

}  // namespace

struct LowRank::Matrix {
  Slice slice;
  int64_t rows, columns, rank;
  int64_t p, q;  // of the unit's factors, where its own begin
  uint64_t key;

  int64_t length(Factor factor) const { return factor == Factor::p ? rows : columns; }
  int64_t begin(Factor factor) const { return factor == Factor::p ? p : q; }
};

LowRank::LowRank(const std::string& method, Config& config, const CompressorSetup& setup)
    : method_(method) {
  config.bind("compression.rank", rank_, "columns of the factors of a matrix");
  WISP_CHECK(rank_ > 0, config.where("compression.rank"), ": compression.rank is ", rank_,
             ", expected more than 0");
  config.bind("compression.min_rate", min_rate_,
              "a matrix is compressed if it has more than this times the numbers that are sent "
              "instead; 0: always");
  WISP_CHECK(min_rate_ >= 0.0, config.where("compression.min_rate"), ": compression.min_rate is ",
             min_rate_, ", expected 0 or more");
  config.bind("compression.start_after", start_after_, "updates made dense, before the first one");
  WISP_CHECK(start_after_ >= 0, config.where("compression.start_after"),
             ": compression.start_after is ", start_after_, ", expected 0 or more");
  values_ = bind_values(method, config);
  feedback_ = bind_feedback(config, setup, Feedback::ef);
  WISP_CHECK(feedback_.kind == Feedback::ef || feedback_.kind == Feedback::none,
             config.where("compression.feedback"), ": ", method,
             " has a residual of its own; compression.feedback can be auto, ef or none");
}

std::string LowRank::refusal(const Field& field, double exchanges) const {
  const int64_t columns = field.numel / field.rows;
  const double sent = exchanges * static_cast<double>(rank_of(field) * (field.rows + columns));
  if (static_cast<double>(field.numel) > min_rate_ * sent) return {};
  return concat(method_, " would send ", sent, " numbers a step for a matrix of ", field.rows,
                " x ", columns, ", more than 1/", min_rate_, " of it (compression.min_rate)");
}

// ---------------------------------------------------------------- sizes

int64_t LowRank::rank_of(const Field& field) const {
  return std::min({rank_, field.rows, field.numel / field.rows});
}

template <class Visit>
void LowRank::each_matrix(const UnitSpec& spec, const Visit& visit) const {
  int64_t p = 0, q = 0;
  for (const Field& field : spec.fields) {
    WISP_CHECK(field.slices.size() == 1, method_, ": a matrix is one parameter, this field has ",
               field.slices.size(), "; use compression.scope = \"layer\"");
    const Matrix matrix{field.slices.front(),
                        field.rows,
                        field.numel / field.rows,
                        rank_of(field),
                        p,
                        q,
                        field.key};
    visit(matrix);
    p += matrix.rank * matrix.rows;
    q += matrix.rank * matrix.columns;
  }
}

int64_t LowRank::numel(const UnitSpec& spec, Factor factor) const {
  int64_t total = 0;
  each_matrix(spec, [&](const Matrix& m) { total += m.rank * m.length(factor); });
  return total;
}

std::vector<StateSpec> LowRank::state(const UnitSpec& spec) const {
  std::vector<StateSpec> state;
  if (feedback()) state.push_back({.name = "residual"});
  for (const Factor factor : {Factor::p, Factor::q}) {
    state.push_back({.name = factor == Factor::p ? "p" : "q",
                     .per_element = false,
                     .shape = {numel(spec, factor)},
                     .sharing = Sharing::shared});
  }
  return state;
}

int64_t LowRank::scratch_bytes() { return sizeof(Column); }

Message LowRank::message(const UnitSpec& spec, Factor factor) const {
  return {.kind = Collective::all_reduce,
          .dtype = values_,
          .bytes = numel(spec, factor) * size_of(values_)};
}

const Tensor& LowRank::factor_of(const Unit& unit, Factor factor) const {
  return unit.state->tensors[(feedback() ? 1u : 0u) + (factor == Factor::p ? 0u : 1u)];
}

Tensor LowRank::view(const Unit& unit, const Matrix& m, Factor factor) const {
  return factor_of(unit, factor).slice(m.begin(factor), {m.rank, m.length(factor)});
}

Tensor LowRank::matrix_of(const Unit& unit, const Matrix& m) const {
  const Tensor& arena = feedback() ? unit.state->tensors[0] : unit.gradient;
  return arena.slice(m.slice.offset, {m.rows, m.columns});
}

// ---------------------------------------------------------------- steps

void LowRank::take(Context& context, const Unit& unit, const StepInfo& info) const {
  if (!feedback() || !unit.finite) return;
  const bool scaled = feedback_.update_units && info.last_lr > 0.0 && info.lr > 0.0;
  const auto gain = static_cast<float>(scaled ? info.last_lr / info.lr : 1.0);
  each_matrix(unit.spec, [&](const Matrix& m) {
    parallel_for(
        context.stream, m.slice.numel,
        Take{unit.gradient.data<float>() + m.slice.offset, gain, matrix_of(unit, m).data<float>()});
  });
}

void LowRank::forget(Context& context, const Unit& unit, Factor factor) const {
  fill_zero(context.stream, factor_of(unit, factor));
}

void LowRank::orthonormalise(Context& context, const Unit& unit, const StepInfo& info,
                             Factor factor) const {
  auto* state = reinterpret_cast<Column*>(unit.scratch);
  each_matrix(unit.spec, [&](const Matrix& m) {
    const Philox random(info.seed, static_cast<uint64_t>(info.step), m.key);
    const int64_t length = m.length(factor);
    float* columns = view(unit, m, factor).data<float>();
    for (int64_t c = 0; c < m.rank; ++c) {
      const int64_t first = (factor == Factor::p ? 0 : m.rank * m.rows) + c * length;
      orthonormalise_column(context.stream, columns, length, c,
                            Draw{random, first, columns + c * length}, state);
    }
  });
}

void LowRank::multiply(Context& context, const Unit& unit, Factor factor) const {
  if (!unit.finite) return forget(context, unit, factor);
  each_matrix(unit.spec, [&](const Matrix& m) {
    const Tensor p = view(unit, m, Factor::p);
    const Tensor q = view(unit, m, Factor::q);
    const Tensor matrix = matrix_of(unit, m);
    if (factor == Factor::p) {
      context.backend.gemm(context.stream,
                           {.m = m.rank, .n = m.rows, .k = m.columns, .transpose_b = true}, q,
                           matrix, {p, false});
    } else {
      context.backend.gemm(context.stream, {.m = m.rank, .n = m.columns, .k = m.rows}, p, matrix,
                           {q, false});
    }
  });
}

void LowRank::send(Context& context, const Unit& unit, const StepInfo& info, Factor factor,
                   const Outlet& outlet) const {
  const Tensor& numbers = factor_of(unit, factor);
  WISP_CHECK(outlet.capacity >= numbers.numel() * size_of(values_), method_, ": the unit needs ",
             numbers.numel() * size_of(values_), " bytes, the outlet has ", outlet.capacity);
  const auto write = [&](auto zero, float limit) {
    using T = decltype(zero);
    parallel_for(context.stream, numbers.numel(),
                 Send<T>{numbers.data<float>(), limit, reinterpret_cast<T*>(outlet.data)});
  };
  const float f16_limit = 65504.0f / static_cast<float>(info.workers);
  if (values_ == DType::f32) return write(float{}, std::numeric_limits<float>::max());
  if (values_ == DType::f16) return write(Half{}, f16_limit);
  write(BFloat16{}, std::numeric_limits<float>::max());
}

void LowRank::keep_unsent(Context& context, const Unit& unit) const {
  if (!feedback() || !unit.finite) return;
  each_matrix(unit.spec, [&](const Matrix& m) {
    context.backend.gemm(
        context.stream, {.m = m.rows, .n = m.columns, .k = m.rank, .transpose_a = true},
        view(unit, m, Factor::p), view(unit, m, Factor::q), {matrix_of(unit, m), true});
  });
}

void LowRank::receive(Context& context, const Unit& unit, Factor factor,
                      const Payload& payload) const {
  const Tensor& numbers = factor_of(unit, factor);
  WISP_CHECK(payload.bytes == numbers.numel() * size_of(values_), method_, ": the sum has ",
             payload.bytes, " bytes, expected ", numbers.numel() * size_of(values_));
  const auto read = [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, numbers.numel(),
                 Receive<T>{reinterpret_cast<const T*>(payload.data), numbers.data<float>()});
  };
  if (values_ == DType::f32) return read(float{});
  if (values_ == DType::f16) return read(Half{});
  read(BFloat16{});
}

void LowRank::approximate(Context& context, const Unit& unit) const {
  each_matrix(unit.spec, [&](const Matrix& m) {
    context.backend.gemm(context.stream,
                         {.m = m.rows, .n = m.columns, .k = m.rank, .transpose_a = true},
                         view(unit, m, Factor::p), view(unit, m, Factor::q),
                         {unit.gradient.slice(m.slice.offset, {m.rows, m.columns}), false});
  });
}

void LowRank::keep_difference(Context& context, const Unit& unit, const StepInfo& info) const {
  if (!feedback() || !unit.finite) return;
  const float share = 1.0f / static_cast<float>(info.workers);
  each_matrix(unit.spec, [&](const Matrix& m) {
    parallel_for(context.stream, m.slice.numel,
                 Subtract{unit.gradient.data<float>() + m.slice.offset, share,
                          matrix_of(unit, m).data<float>()});
  });
}

}  // namespace wisp
