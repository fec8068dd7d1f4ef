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

/// Adds each gate's rows of a weight, in the order `gates`.
void add_gates(std::vector<Tensor>& parts, const Tensor& weight, const Ints& gates) {
  const int64_t units = weight.shape()[0] / std::ssize(gates);
  for (const int64_t gate : gates) parts.push_back(weight.rows(gate * units, (gate + 1) * units));
}

Tensor joined(const std::vector<Tensor>& parts, const Shape& shape) {
  const Tensor all(shape, parts[0].dtype());
  std::byte* into = all.raw();
  for (const Tensor& part : parts)
    into = std::copy_n(part.raw(), static_cast<size_t>(part.bytes()), into);
  return all;
}

}  // namespace

std::string OnnxForms::rnn(const TracedOp& op) {
  const int64_t directions = op.integer("directions");
  const bool has_state = std::ssize(op.inputs) > 1 + 4 * directions;
  if (!has_state && !trace_.sequence) return rnn_sequence(op);
  const int64_t positions = op.small.integer("positions");
  WISP_CHECK(has_state && positions == 1 && directions == 1, "onnx: a recurrent layer with ",
             directions, " directions over ", positions, " positions ",
             has_state ? "with" : "without",
             " a state cannot be exported; expected one direction, one position and a state, or "
             "whole samples without a state");
  return rnn_position(op);
}

/// Adds one node for all positions, with weights of its own.
std::string OnnxForms::rnn_sequence(const TracedOp& op) {
  const auto cell = static_cast<RnnCell>(op.integer("cell"));
  const int64_t sequences = op.small.integer("sequences"),
                positions = op.small.integer("positions");
  WISP_CHECK(op.shape(0)[0] == sequences * positions, "onnx: a recurrent layer over ",
             op.shape(0)[0], " rows of ", sequences, " sequences of up to ", positions,
             " positions, expected sequences of one length");
  std::vector<OnnxAttribute> attributes{{"hidden_size", op.shape(2)[1]}};
  if (op.integer("directions") == 2) attributes.push_back({"direction", "bidirectional"});
  if (cell == RnnCell::gru) attributes.push_back({"linear_before_reset", int64_t{1}});
  const std::string x =
      shaped(in(op, 0), {op.extent("positions"), op.extent("sequences"), op.input(0).extents()[1]});
  const std::string y =
      node(onnx_name(cell),
           {x, stacked(op, "W", {0}), stacked(op, "R", {1}), stacked(op, "B", {2, 3})}, attributes);
  // (positions, directions, sequences, units)
  return shaped(node("Transpose", {y}, {{"perm", Ints{0, 2, 1, 3}}}), op.result().extents());
}

std::string OnnxForms::stacked(const TracedOp& op, const char* operand,
                               const std::vector<size_t>& parameters) {
  const Ints gates = onnx_gates(static_cast<RnnCell>(op.integer("cell")));
  const auto directions = static_cast<size_t>(op.integer("directions"));
  std::vector<Tensor> parts;
  for (size_t direction = 0; direction < directions; ++direction)
    for (const size_t parameter : parameters)
      add_gates(parts, trace_.values[weight(op, 1 + 4 * direction + parameter)].small, gates);
  const size_t first = weight(op, 1 + parameters[0]);
  const Shape& one = trace_.values[first].small.shape();
  const std::string name = names_[first] + "." + operand;
  graph_.initializers.emplace_back(name,
                                   joined(parts, one.with_rows(std::ssize(parameters) * one[0])
                                                     .stacked(static_cast<int64_t>(directions))));
  return name;
}

size_t OnnxForms::weight(const TracedOp& op, size_t i) const {
  const std::optional<size_t> from = op.inputs.at(i);
  const bool found =
      from && *from < trace_.ends.size() && trace_.ends[*from].kind == TracedEnd::Kind::weight;
  WISP_CHECK(found, "onnx: input ", i, " of ", op.name(), ", ", op.shape(i),
             ", is not a parameter, expected one, because ONNX has another order of gates");
  return *from;
}

/// Adds nodes for one position, whose weights keep their names and their order of gates.
std::string OnnxForms::rnn_position(const TracedOp& op) {
  const auto product = [&](size_t x, size_t weight, size_t bias) {
    return node("Gemm", {in(op, x), in(op, weight), in(op, bias)}, {{"transB", int64_t{1}}});
  };
  const std::string ax = product(0, 1, 3), ah = product(5, 2, 4);
  const int64_t units = op.shape(2)[1];
  const auto part = [&](const std::string& all, int64_t gate) {
    return node("Slice",
                {all, integers({gate * units}), integers({(gate + 1) * units}), integers({1})});
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
        node("Add", {node("Mul", {forget, in(op, 6)}), node("Mul", {in_gate, candidate})});
    h = node("Mul", {out_gate, node("Tanh", {c})});
    names_[op.more[1]] = c;
  } else {
    const std::string reset = node("Sigmoid", {sum(0)}), update = node("Sigmoid", {sum(1)});
    const std::string candidate =
        node("Tanh", {node("Add", {part(ax, 2), node("Mul", {reset, part(ah, 2)})})});
    h = node("Add", {candidate, node("Mul", {update, node("Sub", {in(op, 5), candidate})})});
  }
  names_[op.more[0]] = h;
  return h;
}

}  // namespace wisp
