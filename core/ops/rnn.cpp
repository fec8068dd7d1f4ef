#include <algorithm>
#include <utility>

#include "core/backend.h"
#include "core/op_log.h"
#include "core/ops.h"

namespace wisp {
namespace {

const char* name_of(RnnCell cell) {
  if (cell == RnnCell::lstm) return "lstm";
  return cell == RnnCell::gru ? "gru" : "rnn";
}

void check_parameters(const char* op, const RnnSpec& spec, const RnnWeights& w, DType type) {
  const int64_t gates = spec.gates() * spec.hidden;
  const auto check = [&](const char* what, const Tensor& tensor, const Shape& shape) {
    WISP_CHECK(tensor.shape() == shape && tensor.dtype() == type, op, ": ", what, " ",
               tensor.shape(), " ", name_of(tensor.dtype()), ", expected ", shape, " ",
               name_of(type));
  };
  check("input weight", w.input, {gates, spec.inputs});
  check("recurrent weight", w.recurrent, {gates, spec.hidden});
  check("input bias", w.input_bias, {gates});
  check("recurrent bias", w.recurrent_bias, {gates});
}

void check_state(const char* op, const RnnSpec& spec, const Tensor& state, DType type) {
  if (!state.defined()) return;
  const Shape shape{spec.directions, spec.sequences(), spec.hidden};
  WISP_CHECK(state.shape() == shape && state.dtype() == type, op, ": state ", state.shape(), " ",
             name_of(state.dtype()), ", expected ", shape, " ", name_of(type));
}

/// The index of a parameter among the inputs: x, then each direction's parameters.
size_t input_of(size_t direction, size_t parameter) { return 1 + 4 * direction + parameter; }

}  // namespace

RnnResult rnn(RnnCell cell, const Variable& x, const std::vector<int64_t>& rows,
              const std::vector<RnnParameters>& directions, const RnnState& before) {
  const char* op = name_of(cell);
  Context& context = x.context();
  const DType type = x.value().dtype();
  WISP_CHECK(directions.size() == 1 || directions.size() == 2, op, ": ", directions.size(),
             " directions, expected 1 or 2");
  WISP_CHECK(x.shape().rank() == 2 && directions[0].recurrent.shape().rank() == 2, op, ": input ",
             x.shape(), " and recurrent weight ", directions[0].recurrent.shape(),
             ", expected matrices");
  const RnnSpec spec{.cell = cell,
                     .inputs = x.shape()[1],
                     .hidden = directions[0].recurrent.shape()[1],
                     .directions = std::ssize(directions),
                     .rows = rows};
  check_rows(op, rows);
  WISP_CHECK(x.shape() == Shape({spec.total_rows(), spec.inputs}), op, ": input ", x.shape(),
             ", expected (", spec.total_rows(), ", ", spec.inputs, ")");
  std::vector<RnnWeights> weights;
  std::vector<Variable> inputs{x};
  for (const RnnParameters& p : directions) {
    weights.push_back(
        {p.input.value(), p.recurrent.value(), p.input_bias.value(), p.recurrent_bias.value()});
    check_parameters(op, spec, weights.back(), wide_of(type));
    weights.back().input = p.input.factor(type);
    weights.back().recurrent = p.recurrent.factor(type);
    inputs.insert(inputs.end(), {p.input, p.recurrent, p.input_bias, p.recurrent_bias});
  }
  check_state(op, spec, before.h, type);
  check_state(op, spec, before.c, type);

  Tensor saved;
  if (context.recording && std::ranges::any_of(inputs, &Variable::requires_grad))
    saved = context.empty({context.backend.recurrent().rnn_saved_bytes(spec, type)}, DType::u8);
  const Shape state{spec.directions, spec.sequences(), spec.hidden};
  RnnState after{context.empty(state, type), {}};
  if (cell == RnnCell::lstm) after.c = context.empty(state, type);
  Tensor y = context.empty({spec.total_rows(), spec.directions * spec.hidden}, type);
  context.backend.recurrent().rnn(context.stream, spec, x.value(), weights, before, y, after,
                                  saved);

  const auto logged = [&](const RnnState& states) {
    std::vector<Tensor> tensors;
    for (const Tensor& tensor : {states.h, states.c})
      if (tensor.defined())
        tensors.push_back(tensor.reshape({spec.directions * spec.sequences(), spec.hidden}));
    return tensors;
  };
  if (context.log) {  // constants that readers of the log need
    for (const Tensor& tensor : logged(before)) inputs.emplace_back(context, tensor);
  }
  Variable result = record(
      "rnn", y, inputs,
      [&context, spec, weights, before, input = x.value(), y, saved](const Tensor& dy, Inputs& in) {
        Tensor gates = saved;
        GradSlot dx;
        if (in.wanted(0)) dx = in.slot(0);
        context.backend.recurrent().rnn_dx(context.stream, spec, y, dy, weights, before, gates, dx);
        std::vector<RnnGradients> gradients;
        for (size_t d = 0; d < weights.size(); ++d) {
          const auto slot = [&](size_t parameter) {
            const size_t i = input_of(d, parameter);
            return in.wanted(i) ? in.slot(i) : GradSlot{};
          };
          gradients.push_back({slot(0), slot(1), slot(2), slot(3)});
        }
        context.backend.recurrent().rnn_dw(context.stream, spec, input, y, before, gates,
                                           gradients);
      },
      {{"cell", static_cast<int>(cell)},
       {"positions", std::ssize(rows)},
       {"sequences", spec.sequences()},
       {"directions", spec.directions}});
  if (context.log) context.log->back().more = logged(after);
  return {std::move(result), std::move(after)};
}

}  // namespace wisp
