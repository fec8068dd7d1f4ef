#include "compression/low_rank/low_rank.h"

#include <algorithm>

#include "compression/hand_over.h"
#include "compression/low_rank/orthonormal.h"
#include "compression/method_options.h"
#include "compression/slices.h"
#include "core/backend.h"
#include "core/loops/device_table.h"
#include "core/loops/parallel.h"
#include "core/products.h"
#include "core/train/norm.h"

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
  float most;
  T* out;
  WISP_HD void operator()(int64_t i) const {
    const T value = to_wire<T>(within(most, factor[i]));
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

}  // namespace

/// A field of a unit with its factors.
struct LowRank::Matrix {
  const Field& field;
  int64_t rows, columns, rank;
  Tensor m;     // (rows, columns)
  Tensor p, q;  // (rank, rows), (rank, columns)

  int64_t offset() const { return field.slices.front().offset; }
  const Tensor& factor(Factor which) const { return which == Factor::p ? p : q; }
};

LowRankOptions LowRankOptions::bind(Config& config, const CompressorSetup& setup) {
  LowRankOptions options;
  config.bind("compression.rank", options.rank, "columns of the factors of a matrix");
  config.bind("compression.min_rate", options.min_rate,
              "ratio of a matrix's elements to the numbers sent instead, above which it is "
              "compressed, 0 or more; 0: always");
  options.start_after = bind_start_after(config);
  options.values = bind_summed_values(config);
  options.feedback = bind_feedback(config, setup, Feedback::ef);
  return options;
}

LowRank::LowRank(const char* method, double exchanges, const LowRankOptions& options,
                 const Config& places)
    : method_(method), exchanges_(exchanges), options_(options) {
  places.expect(options.rank > 0, "compression.rank", options.rank, "more than 0");
  places.expect(options.min_rate >= 0.0, "compression.min_rate", options.min_rate, "0 or more");
  WISP_CHECK(options.feedback.kind == Feedback::ef || options.feedback.kind == Feedback::none,
             places.opening("compression.feedback"), method,
             " has a residual of its own; compression.feedback can be auto, ef or none");
  check_start_after(options.start_after, places);
  check_summed_values(options.values);
}

std::string LowRank::refusal(const Field& field) const {
  const double sent = numbers_sent(field);
  if (static_cast<double>(field.numel) > options_.min_rate * sent) return {};
  return concat(method_, " would send ", sent, " numbers a step for a matrix of ", field.rows,
                " x ", field.numel / field.rows, ", 1/", options_.min_rate,
                " of it or more (compression.min_rate)");
}

std::string LowRank::remark(const UnitSpec& spec) const {
  std::string small;
  for (const Field& field : spec.fields) {
    if (static_cast<double>(field.numel) > numbers_sent(field)) continue;
    small += concat(small.empty() ? "" : ", ", field.rows, " x ", field.numel / field.rows);
  }
  if (small.empty()) return {};
  return concat("factors of rank ", options_.rank,
                " send no fewer numbers a step than matrices of ", small, " have");
}

// ---------------------------------------------------------------- sizes

int64_t LowRank::rank_of(const Field& field) const {
  return std::min({options_.rank, field.rows, field.numel / field.rows});
}

int64_t LowRank::length(const Field& field, Factor factor) const {
  return factor == Factor::p ? field.rows : field.numel / field.rows;
}

double LowRank::numbers_sent(const Field& field) const {
  return exchanges_ * static_cast<double>(rank_of(field) * (field.rows + field.numel / field.rows));
}

int64_t LowRank::bytes(const UnitSpec& spec, Factor factor) const {
  return size_of(options_.values) * sum_of_fields(spec, [&](const Field& field) {
           return rank_of(field) * length(field, factor);
         });
}

std::vector<StateSpec> LowRank::state(const UnitSpec& spec, int) const {
  std::vector<StateSpec> state;
  if (feedback()) state.push_back({.name = "residual"});
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const Field& field = spec.fields[f];
    WISP_CHECK(field.slices.size() == 1, method_, ": a matrix is one parameter, this field has ",
               field.slices.size(), "; use compression.scope = \"layer\"");
    for (const Factor factor : {Factor::p, Factor::q}) {
      state.push_back({.name = factor == Factor::p ? "p" : "q",
                       .per_element = false,
                       .shape = {rank_of(field), length(field, factor)},
                       .field = static_cast<int>(f),
                       .sharing = Sharing::shared});
    }
  }
  return state;
}

int64_t LowRank::scratch_bytes(const UnitSpec& spec, const StepInfo&) const {
  return std::ssize(spec.fields) * static_cast<int64_t>(sizeof(Columns));
}

Message LowRank::message_of(const UnitSpec& spec, Factor factor) const {
  return {.kind = Collective::all_reduce, .dtype = options_.values, .bytes = bytes(spec, factor)};
}

// ---------------------------------------------------------------- steps

template <class Visit>
void LowRank::each_matrix(const Unit& unit, const Visit& visit) const {
  const std::vector<Tensor>& state = unit.state->tensors;
  const Tensor& arena = feedback() ? state[0] : unit.gradient;
  size_t next = feedback() ? 1 : 0;
  for (const Field& field : unit.spec.fields) {
    const int64_t columns = field.numel / field.rows;
    visit(Matrix{field, field.rows, columns, rank_of(field),
                 arena.slice(field.slices.front().offset, {field.rows, columns}), state[next],
                 state[next + 1]});
    next += 2;
  }
}

void LowRank::take(Context& context, const Unit& unit, const StepInfo& info) const {
  if (!feedback()) return;
  const float gain = options_.feedback.gain(info);
  each_matrix(unit, [&](const Matrix& matrix) {
    if (!unit.finite) return scale(context.stream, matrix.m, gain);
    parallel_for(context.stream, matrix.field.numel,
                 Take{unit.gradient.data<float>() + matrix.offset(), gain, matrix.m.data<float>()});
  });
}

void LowRank::forget(Context& context, const Unit& unit, Factor factor) const {
  each_matrix(unit,
              [&](const Matrix& matrix) { fill_zero(context.stream, matrix.factor(factor)); });
}

void LowRank::orthonormalise(Context& context, const Unit& unit, const StepInfo& info,
                             Factor factor) const {
  TableWriter table(context.stream, unit.scratch);
  int64_t numel = 0;
  each_matrix(unit, [&](const Matrix& matrix) {
    const Tensor& columns = matrix.factor(factor);
    table.put(Columns{columns.data<float>(), columns.shape()[0], columns.shape()[1],
                      info.random(matrix.field), factor == Factor::p ? 0 : matrix.p.numel()});
    numel += columns.numel();
  });
  table.finish();
  const auto matrices = std::ssize(unit.spec.fields);
  wisp::orthonormalise(context.stream, reinterpret_cast<const Columns*>(unit.scratch), matrices,
                       numel / matrices);
}

void LowRank::multiply(Context& context, const Unit& unit, Factor factor) const {
  if (!unit.finite) return forget(context, unit, factor);
  each_matrix(unit, [&](const Matrix& matrix) {
    const bool p = factor == Factor::p;
    const GemmSpec spec{.m = matrix.rank,
                        .n = p ? matrix.rows : matrix.columns,
                        .k = p ? matrix.columns : matrix.rows,
                        .transpose_b = p};
    context.backend.products().gemm(context.stream, spec, p ? matrix.q : matrix.p, matrix.m,
                                    {matrix.factor(factor), false});
  });
}

void LowRank::send(Context& context, const Unit& unit, const StepInfo& info, Factor factor,
                   const Outlet& outlet) const {
  outlet.expect(method_, bytes(unit.spec, factor));
  with_wire_type(options_.values, [&]<class T>(T) {
    T* out = reinterpret_cast<T*>(outlet.data);
    each_matrix(unit, [&](const Matrix& matrix) {
      const Tensor& numbers = matrix.factor(factor);
      parallel_for(context.stream, numbers.numel(),
                   Send<T>{numbers.data<float>(), largest_summand<T>(info.summands), out});
      out += numbers.numel();
    });
  });
}

void LowRank::receive(Context& context, const Unit& unit, Factor factor,
                      const Payload& payload) const {
  WISP_CHECK(payload.bytes == bytes(unit.spec, factor), method_, ": the sum has ", payload.bytes,
             " bytes, expected ", bytes(unit.spec, factor));
  with_wire_type(options_.values, [&]<class T>(T) {
    const T* in = reinterpret_cast<const T*>(payload.data);
    each_matrix(unit, [&](const Matrix& matrix) {
      const Tensor& numbers = matrix.factor(factor);
      parallel_for(context.stream, numbers.numel(), Receive<T>{in, numbers.data<float>()});
      in += numbers.numel();
    });
  });
}

/// into <- P Qᵀ; `into` may also accumulate.
void LowRank::product(Context& context, const Matrix& matrix, const GradSlot& into) {
  const GemmSpec spec{.m = matrix.rows, .n = matrix.columns, .k = matrix.rank, .transpose_a = true};
  context.backend.products().gemm(context.stream, spec, matrix.p, matrix.q, into);
}

void LowRank::keep_unsent(Context& context, const Unit& unit) const {
  if (!feedback() || !unit.finite) return;
  each_matrix(unit, [&](const Matrix& matrix) { product(context, matrix, {matrix.m, true}); });
}

void LowRank::approximate(Context& context, const Unit& unit) const {
  each_matrix(unit, [&](const Matrix& matrix) {
    product(context, matrix,
            {unit.gradient.slice(matrix.offset(), {matrix.rows, matrix.columns}), false});
  });
}

void LowRank::keep_difference(Context& context, const Unit& unit, const StepInfo& info) const {
  if (!feedback()) return;
  each_matrix(unit, [&](const Matrix& matrix) {
    parallel_for(context.stream, matrix.field.numel,
                 Subtract{unit.gradient.data<float>() + matrix.offset(),
                          1.0f / static_cast<float>(info.summands), matrix.m.data<float>()});
  });
}

void LowRank::release(Context& context, Unit& unit, const StepInfo& info) {
  if (feedback()) hand_over(context, unit, unit.state->tensors[0], options_.feedback.gain(info));
}

}  // namespace wisp
