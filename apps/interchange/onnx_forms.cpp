#include "apps/interchange/onnx_forms.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/channel_order.h"
#include "core/rnn.h"

namespace wisp {
namespace {

using Ints = std::vector<int64_t>;
using Names = std::vector<std::string>;

const Ints kToLast{0, 2, 3, 1}, kToFirst{0, 3, 1, 2};

}  // namespace

OnnxForms::OnnxForms(const OnnxTrace& trace, Names names, OnnxGraph& graph)
    : trace_(trace), names_(std::move(names)), written_(names_.size()), graph_(graph) {
  names_.resize(trace_.values.size());
}

const std::map<std::string, OnnxForms::Form>& OnnxForms::forms() {
  static const std::map<std::string, Form> forms = {
      {"add", &OnnxForms::add_values},
      {"avg_pool2d", &OnnxForms::avg_pool2d},
      {"batch_norm", &OnnxForms::batch_norm},
      {"columns", &OnnxForms::columns},
      {"conv2d", &OnnxForms::conv2d},
      {"embedding", &OnnxForms::embedding},
      {"global_avg_pool", &OnnxForms::global_avg_pool},
      {"join_columns", &OnnxForms::join_columns},
      {"join_rows", &OnnxForms::join_rows},
      {"linear", &OnnxForms::linear},
      {"max_pool2d", &OnnxForms::max_pool2d},
      {"pad_channels", &OnnxForms::pad_channels},
      {"relu", &OnnxForms::relu},
      {"reshape", &OnnxForms::reshape},
      {"rnn", &OnnxForms::rnn},
      {"rows", &OnnxForms::rows},
      {"sigmoid", &OnnxForms::sigmoid},
      {"tanh", &OnnxForms::tanh}};
  return forms;
}

void OnnxForms::add(const TracedOp& op) {
  const auto form = forms().find(op.name());
  if (form == forms().end()) {
    std::string known;
    for (const auto& [name, ignored] : forms()) known += (known.empty() ? "" : ", ") + name;
    throw Error("onnx: there is no form for the op " + op.name() + "; there is one for " + known);
  }
  names_[op.output] = (this->*form->second)(op);
}

const std::string& OnnxForms::name(size_t value) {
  if (value < trace_.ends.size() && trace_.ends[value].kind == TracedEnd::Kind::weight &&
      !written_[value]) {
    written_[value] = true;
    graph_.initializers.emplace_back(names_[value], channels_first(trace_.values[value].small));
  }
  return names_[value];
}

std::string OnnxForms::in(const TracedOp& op, size_t i) {
  const std::optional<size_t> from = op.inputs.at(i);
  WISP_CHECK(from, "onnx: input ", i, " of ", op.name(), ", ", op.shape(i),
             ", is neither an op's result nor a parameter, a buffer, a state or an input of the "
             "model");
  return reshaped(name(*from), trace_.values[*from].extents(), op.input(i).extents());
}

Names OnnxForms::all_inputs(const TracedOp& op) {
  Names names;
  for (size_t i = 0; i < op.inputs.size(); ++i) names.push_back(in(op, i));
  return names;
}

std::string OnnxForms::reshaped(const std::string& value, const Extents& from, const Extents& to) {
  if (from == to) return value;
  Ints shape;
  for (const Extent& extent : to) shape.push_back(extent.of_batch ? -1 : extent.number);
  WISP_CHECK(std::count(shape.begin(), shape.end(), -1) <= 1, "onnx: a reshape of ", value,
             " to a shape with the batch in two extents, expected it in one");
  std::string name = from.size() == 4 ? node("Transpose", {value}, {{"perm", kToLast}}) : value;
  name = node("Reshape", {name, integers(shape)});
  return to.size() == 4 ? node("Transpose", {name}, {{"perm", kToFirst}}) : name;
}

std::string OnnxForms::integers(const Ints& values) {
  const std::string name = concat("integers_", graph_.initializers.size());
  const Tensor tensor({static_cast<int64_t>(values.size())}, DType::i64);
  std::copy(values.begin(), values.end(), tensor.data<int64_t>());
  graph_.initializers.emplace_back(name, tensor);
  return name;
}

std::string OnnxForms::node(const char* type, Names inputs, std::vector<OnnxAttribute> attributes) {
  const std::string name = concat(type, "_", graph_.nodes.size());
  graph_.nodes.push_back({type, std::move(inputs), name, std::move(attributes)});
  return name;
}

std::vector<OnnxAttribute> OnnxForms::window(const TracedOp& op) {
  const int64_t kernel = op.integer("kernel"), stride = op.integer("stride"),
                pad = op.integer("pad");
  return {{"kernel_shape", Ints{kernel, kernel}},
          {"strides", Ints{stride, stride}},
          {"pads", Ints(4, pad)}};
}

std::string OnnxForms::conv2d(const TracedOp& op) {
  const Shape& weight = op.shape(1);
  const int64_t top = op.integer("pad_h"), left = op.integer("pad_w");
  return node("Conv", all_inputs(op),
              {{"kernel_shape", Ints{weight[1], weight[2]}},
               {"strides", Ints{op.integer("stride_h"), op.integer("stride_w")}},
               {"pads", Ints{top, left, top, left}},
               {"dilations", Ints{op.integer("dilation_h"), op.integer("dilation_w")}},
               {"group", op.integer("groups")}});
}

std::string OnnxForms::batch_norm(const TracedOp& op) {
  const int rank = op.shape(0).rank();
  WISP_CHECK(rank == 2 || rank == 4, "onnx: batch_norm of ", op.shape(0),
             ", expected rank 2 or 4, whose second extent there is the channels");
  const bool residual = op.integer("residual") != 0;
  const size_t mean = residual ? 4 : 3;
  std::string value =
      node("BatchNormalization", {in(op, 0), in(op, 1), in(op, 2), in(op, mean), in(op, mean + 1)},
           {{"epsilon", static_cast<float>(op.small.attributes.at("epsilon"))}});
  if (residual) value = node("Add", {value, in(op, 3)});
  return op.integer("relu") ? node("Relu", {value}) : value;
}

std::string OnnxForms::avg_pool2d(const TracedOp& op) {
  std::vector<OnnxAttribute> attributes = window(op);
  attributes.push_back({"count_include_pad", int64_t{1}});
  return node("AveragePool", {in(op, 0)}, std::move(attributes));
}

std::string OnnxForms::global_avg_pool(const TracedOp& op) {
  return node("Flatten", {node("GlobalAveragePool", {in(op, 0)})}, {{"axis", int64_t{1}}});
}

/// An id that is out of the table is an error or another row there, not zeros.
std::string OnnxForms::embedding(const TracedOp& op) {
  return node("Gather", {in(op, 0), in(op, 1)}, {{"axis", int64_t{0}}});
}

std::string OnnxForms::linear(const TracedOp& op) {
  return node("Gemm", all_inputs(op), {{"transB", int64_t{1}}});
}

std::string OnnxForms::reshape(const TracedOp& op) {
  return reshaped(in(op, 0), op.input(0).extents(), op.result().extents());
}

/// Of (a N, …) these are rows of (a, N, …), as N is not known.
std::string OnnxForms::rows(const TracedOp& op) {
  const Extent all = op.input(0).extents()[0], begin = op.extent("begin"), end = op.extent("end");
  const std::string value = in(op, 0);
  if (begin.number == 0 && end == all) return value;
  for (const Extent& bound : {begin, end}) {
    WISP_CHECK(
        bound.number == 0 || bound.of_batch == all.of_batch, "onnx: rows [",
        op.small.integer("begin"), ", ", op.small.integer("end"), ") of ", op.shape(0),
        all.of_batch ? ", expected multiples of the batch" : ", expected the same for each batch");
  }
  const auto slice = [&](const std::string& whole) {
    return node("Slice", {whole, integers({begin.number}), integers({end.number}), integers({0})});
  };
  if (!all.of_batch) return slice(value);
  const Extents extents = op.input(0).extents();
  WISP_CHECK(std::none_of(extents.begin() + 1, extents.end(), [](Extent e) { return e.of_batch; }),
             "onnx: rows of ", op.shape(0), ", expected one extent that grows with the batch");
  const Shape row = channels_first(op.shape(0));
  Ints split{all.number, -1}, joined{-1};
  for (int i = 1; i < row.rank(); ++i) {
    split.push_back(row[i]);
    joined.push_back(row[i]);
  }
  return node("Reshape", {slice(node("Reshape", {value, integers(split)})), integers(joined)});
}

std::string OnnxForms::join_rows(const TracedOp& op) {
  if (op.inputs.size() == 1) return in(op, 0);
  return node("Concat", all_inputs(op), {{"axis", int64_t{0}}});
}

/// One position in nodes of its own, so that weights keep their names and the order of their gates.
std::string OnnxForms::rnn(const TracedOp& op) {
  const bool has_state = op.inputs.size() > 5;
  WISP_CHECK(has_state && op.integer("positions") == 1 && op.integer("directions") == 1,
             "onnx: a recurrent layer of ", op.integer("directions"), " directions over ",
             op.integer("positions"), " positions, ", has_state ? "with" : "without",
             " a state before, expected one position at a time, one direction and a state");
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

/// The last extent is the channels of a value of rank 4.
int64_t OnnxForms::last_axis(const TracedOp& op) {
  const int rank = op.shape(0).rank();
  return rank == 4 ? 1 : rank - 1;
}

std::string OnnxForms::columns(const TracedOp& op) {
  return node("Slice", {in(op, 0), integers({op.integer("begin")}), integers({op.integer("end")}),
                        integers({last_axis(op)})});
}

std::string OnnxForms::join_columns(const TracedOp& op) {
  if (op.inputs.size() == 1) return in(op, 0);
  return node("Concat", all_inputs(op), {{"axis", last_axis(op)}});
}

std::string OnnxForms::pad_channels(const TracedOp& op) {
  const int64_t stride = op.integer("stride"), before = op.integer("before");
  const int64_t after = op.small.output.shape()[3] - op.shape(0)[3] - before;
  std::string value = in(op, 0);
  if (stride > 1) {
    constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
    value = node("Slice", {value, integers({0, 0}), integers({kEnd, kEnd}), integers({2, 3}),
                           integers({stride, stride})});
  }
  return node("Pad", {value, integers({0, before, 0, 0, 0, after, 0, 0})});
}

}  // namespace wisp
