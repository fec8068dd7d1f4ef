#include <algorithm>

#include "apps/interchange/onnx_forms.h"
#include "core/rnn.h"

namespace wisp {
namespace {

using Ints = std::vector<int64_t>;

const char* onnx_name(RnnCell cell) {
  if (cell == RnnCell::lstm) return "LSTM";
  return cell == RnnCell::gru ? "GRU" : "RNN";
}

/// Our gates in ONNX's order: i, o, f, g of our i, f, g, o; z, r, n of our r, z, n.
Ints onnx_gates(RnnCell cell) {
  if (cell == RnnCell::lstm) return {0, 3, 1, 2};
  return cell == RnnCell::gru ? Ints{1, 0, 2} : Ints{0};
}

/// Copies each gate's rows of a weight, in the order `gates`. Returns the end of the copies.
std::byte* copy_gates(const Tensor& weight, const Ints& gates, std::byte* into) {
  const int64_t units = weight.shape()[0] / std::ssize(gates);
  for (const int64_t gate : gates) {
    const Tensor part = weight.rows(gate * units, (gate + 1) * units);
    into = std::copy_n(part.raw(), static_cast<size_t>(part.bytes()), into);
  }
  return into;
}

/// The index of input i among the trace's values. Throws Error unless it is a parameter or buffer.
size_t weight(const OnnxForms& forms, const TracedOp& op, size_t i) {
  const std::optional<size_t> from = op.inputs.at(i);
  WISP_CHECK(from && forms.trace().is_weight(*from), "onnx: input ", i, " of ", op.name, ", ",
             op.shape(i),
             ", is not a parameter, expected one, because ONNX has another order of gates");
  return *from;
}

/// Stacks `parameters` of each direction of a recurrent layer (0 to 3: W of input and of state,
/// their biases) as in ONNX: (directions, gates, ...), in its order of gates. The name is that of
/// the first one plus `operand`.
std::string stacked(OnnxForms& forms, const TracedOp& op, const char* operand,
                    const std::vector<size_t>& parameters) {
  const auto value = [&](size_t i) { return forms.trace().values[weight(forms, op, i)].small; };
  const Ints gates = onnx_gates(static_cast<RnnCell>(op.integer("cell")));
  const int64_t directions = op.integer("directions");
  const size_t first = 1 + parameters[0];
  const Shape one = value(first).shape();
  const Tensor all(one.with_rows(std::ssize(parameters) * one[0]).stacked(directions),
                   value(first).dtype());
  std::byte* into = all.raw();
  for (size_t direction = 0; direction < static_cast<size_t>(directions); ++direction)
    for (const size_t parameter : parameters)
      into = copy_gates(value(1 + 4 * direction + parameter), gates, into);
  return forms.derived(weight(forms, op, first), operand, all);
}

/// Adds one node for all positions, with weights of its own.
std::string sequence_form(OnnxForms& forms, const TracedOp& op) {
  const auto cell = static_cast<RnnCell>(op.integer("cell"));
  const int64_t sequences = op.small.integer("sequences"),
                positions = op.small.integer("positions");
  WISP_CHECK(op.shape(0)[0] == sequences * positions, "onnx: a recurrent layer over ",
             op.shape(0)[0], " rows of ", sequences, " sequences of up to ", positions,
             " positions, expected sequences of one length");
  std::vector<OnnxAttribute> attributes{{"hidden_size", op.shape(2)[1]}};
  if (op.integer("directions") == 2) attributes.push_back({"direction", "bidirectional"});
  if (cell == RnnCell::gru) attributes.push_back({"linear_before_reset", int64_t{1}});
  const std::string x = forms.shaped(
      forms.in(op, 0), {op.extent("positions"), op.extent("sequences"), op.input(0).extents()[1]});
  const std::string y = forms.node(onnx_name(cell),
                                   {x, stacked(forms, op, "W", {0}), stacked(forms, op, "R", {1}),
                                    stacked(forms, op, "B", {2, 3})},
                                   attributes);
  // (positions, directions, sequences, units)
  return forms.shaped(forms.node("Transpose", {y}, {{"perm", Ints{0, 2, 1, 3}}}),
                      op.result().extents());
}

/// Adds nodes for one position, whose weights keep their names and their order of gates.
std::string position_form(OnnxForms& forms, const TracedOp& op) {
  const auto node = [&](const char* type, const std::vector<std::string>& inputs) {
    return forms.node(type, inputs);
  };
  const auto product = [&](size_t x, size_t weight, size_t bias) {
    return forms.node("Gemm", {forms.in(op, x), forms.in(op, weight), forms.in(op, bias)},
                      {{"transB", int64_t{1}}});
  };
  const std::string ax = product(0, 1, 3), ah = product(5, 2, 4);
  const int64_t units = op.shape(2)[1];
  const auto part = [&](const std::string& all, int64_t gate) {
    return node("Slice", {all, forms.integers({gate * units}), forms.integers({(gate + 1) * units}),
                          forms.integers({1})});
  };
  const auto sum = [&](int64_t gate) { return node("Add", {part(ax, gate), part(ah, gate)}); };
  std::string h;
  const auto cell = static_cast<RnnCell>(op.integer("cell"));
  if (cell == RnnCell::tanh) {
    h = node("Tanh", {node("Add", {ax, ah})});
  } else if (cell == RnnCell::lstm) {
    const std::string in_gate = node("Sigmoid", {sum(0)}), forget = node("Sigmoid", {sum(1)});
    const std::string candidate = node("Tanh", {sum(2)}), out_gate = node("Sigmoid", {sum(3)});
    const std::string c =
        node("Add", {node("Mul", {forget, forms.in(op, 6)}), node("Mul", {in_gate, candidate})});
    h = node("Mul", {out_gate, node("Tanh", {c})});
    forms.set_name(op.more[1], c);
  } else {
    const std::string reset = node("Sigmoid", {sum(0)}), update = node("Sigmoid", {sum(1)});
    const std::string candidate =
        node("Tanh", {node("Add", {part(ax, 2), node("Mul", {reset, part(ah, 2)})})});
    h = node("Add", {candidate, node("Mul", {update, node("Sub", {forms.in(op, 5), candidate})})});
  }
  forms.set_name(op.more[0], h);
  return h;
}

}  // namespace

std::string rnn_form(OnnxForms& forms, const TracedOp& op) {
  const int64_t directions = op.integer("directions");
  const bool has_state = std::ssize(op.inputs) > 1 + 4 * directions;
  if (!has_state && !forms.trace().sequence) return sequence_form(forms, op);
  const int64_t positions = op.small.integer("positions");
  WISP_CHECK(has_state && positions == 1 && directions == 1, "onnx: a recurrent layer with ",
             directions, " directions over ", positions, " positions ",
             has_state ? "with" : "without",
             " a state cannot be exported; expected one direction, one position and a state, or "
             "whole samples without a state");
  return position_form(forms, op);
}

}  // namespace wisp
