#include "apps/interchange/onnx_forms.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/tensor/channel_order.h"

namespace wisp {
namespace {

using Ints = std::vector<int64_t>;
using Names = std::vector<std::string>;

const Ints kToLast{0, 2, 3, 1}, kToFirst{0, 3, 1, 2};

/// The extents of (..., C) as a matrix (rows, C).
Extents matrix_of(const Extents& extents) {
  Extent rows{1, false};
  for (size_t i = 0; i + 1 < extents.size(); ++i)
    rows = {rows.number * extents[i].number, rows.of_batch || extents[i].of_batch};
  return {rows, extents.back()};
}

/// The means of adaptive_avg_pool() along an axis of `in` positions as a matrix: (out, in) if
/// `by_row` is set, else its transpose.
Tensor window_means(int64_t in, int64_t out, bool by_row) {
  const Tensor means(by_row ? Shape{out, in} : Shape{in, out}, DType::f64);
  std::fill_n(means.data<double>(), means.numel(), 0.0);
  for (int64_t i = 0; i < out; ++i) {
    const int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
    for (int64_t at = begin; at < end; ++at)
      means.data<double>()[by_row ? i * in + at : at * out + i] =
          1.0 / static_cast<double>(end - begin);
  }
  return means;
}

/// Throws Error unless packed frames are as many as the columns of images (N, H, W, C), that is,
/// unless all sequences end together.
void check_frames(const TracedOp& op, const Shape& images, const Shape& packed) {
  WISP_CHECK(packed[0] == images[0] * images[2], "onnx: ", op.name(), " of ", packed[0],
             " frames in images ", images, ", expected sequences of full length");
}

}  // namespace

OnnxForms::OnnxForms(const OnnxTrace& trace, Names names, OnnxGraph& graph)
    : trace_(trace), names_(std::move(names)), written_(names_.size()), graph_(graph) {
  names_.resize(trace_.values.size());
}

const std::map<std::string, OnnxForms::Form>& OnnxForms::forms() {
  static const std::map<std::string, Form> forms = {
      {"adaptive_avg_pool", &OnnxForms::adaptive_avg_pool},
      {"add", &OnnxForms::add_values},
      {"avg_pool2d", &OnnxForms::avg_pool2d},
      {"batch_norm", &OnnxForms::batch_norm},
      {"clipped_relu", &OnnxForms::clipped_relu},
      {"columns", &OnnxForms::columns},
      {"conv2d", &OnnxForms::conv2d},
      {"embedding", &OnnxForms::embedding},
      {"flatten", &OnnxForms::flatten},
      {"global_avg_pool", &OnnxForms::global_avg_pool},
      {"join_columns", &OnnxForms::join_columns},
      {"join_rows", &OnnxForms::join_rows},
      {"linear", &OnnxForms::linear},
      {"max_pool2d", &OnnxForms::max_pool2d},
      {"pack_frames", &OnnxForms::pack_frames},
      {"pad_channels", &OnnxForms::pad_channels},
      {"relu", &OnnxForms::relu},
      {"reshape", &OnnxForms::reshape},
      {"rnn", &OnnxForms::rnn},
      {"rows", &OnnxForms::rows},
      {"sigmoid", &OnnxForms::sigmoid},
      {"swap_last", &OnnxForms::swap_last},
      {"tanh", &OnnxForms::tanh},
      {"unpack_frames", &OnnxForms::unpack_frames}};
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
  WISP_CHECK(
      !names_[value].empty(),
      "onnx: the model uses the final state of a recurrent layer over whole sequences, of which "
      "ONNX export has only the output");
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
  std::string name = from.size() == 4 ? node("Transpose", {value}, {{"perm", kToLast}}) : value;
  name = shaped(name, to);
  return to.size() == 4 ? node("Transpose", {name}, {{"perm", kToFirst}}) : name;
}

std::string OnnxForms::shaped(const std::string& value, const Extents& to) {
  Ints shape;
  for (const Extent& extent : to) shape.push_back(extent.of_batch ? -1 : extent.number);
  WISP_CHECK(std::count(shape.begin(), shape.end(), -1) <= 1, "onnx: a reshape of ", value,
             " to a shape with the batch in two extents, expected it in one");
  return node("Reshape", {value, integers(shape)});
}

std::string OnnxForms::integers(const Ints& values) {
  const Tensor tensor({static_cast<int64_t>(values.size())}, DType::i64);
  std::copy(values.begin(), values.end(), tensor.data<int64_t>());
  return constant("integers", tensor);
}

std::string OnnxForms::scalar(double value) {
  const Tensor tensor({}, DType::f64);
  tensor.data<double>()[0] = value;
  return constant("scalar", tensor);
}

std::string OnnxForms::constant(const char* kind, const Tensor& values) {
  const std::string name = concat(kind, "_", graph_.initializers.size());
  graph_.initializers.emplace_back(name, values);
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

/// In ONNX the second extent is the channels, so a value that is no image becomes a matrix.
std::string OnnxForms::batch_norm(const TracedOp& op) {
  const Extents extents = op.input(0).extents();
  const Extents inside = extents.size() == 4 ? extents : matrix_of(extents);
  const bool residual = op.integer("residual") != 0;
  const size_t mean = residual ? 4 : 3;
  std::string value = node(
      "BatchNormalization",
      {reshaped(in(op, 0), extents, inside), in(op, 1), in(op, 2), in(op, mean), in(op, mean + 1)},
      {{"epsilon", static_cast<float>(op.small.attributes.at("epsilon"))}});
  value = reshaped(value, inside, extents);
  if (residual) value = node("Add", {value, in(op, 3)});
  return op.integer("relu") ? node("Relu", {value}) : value;
}

std::string OnnxForms::clipped_relu(const TracedOp& op) {
  return node("Clip", {in(op, 0), scalar(0.0), scalar(op.small.attributes.at("bound"))});
}

std::string OnnxForms::avg_pool2d(const TracedOp& op) {
  std::vector<OnnxAttribute> attributes = window(op);
  attributes.push_back({"count_include_pad", int64_t{1}});
  return node("AveragePool", {in(op, 0)}, std::move(attributes));
}

std::string OnnxForms::global_avg_pool(const TracedOp& op) {
  return node("Flatten", {node("GlobalAveragePool", {in(op, 0)})}, {{"axis", int64_t{1}}});
}

/// ONNX has no windows of unequal sizes, so the means along each axis are a product with a matrix.
std::string OnnxForms::adaptive_avg_pool(const TracedOp& op) {
  const Shape &from = op.shape(0), &to = op.small.output.shape();
  const std::string rows = node(
      "MatMul", {constant("matrix", window_means(from[1], to[1], /*by_row=*/true)), in(op, 0)});
  return node("MatMul", {rows, constant("matrix", window_means(from[2], to[2], /*by_row=*/false))});
}

/// In ONNX an id outside the table is an error or another row, not zeros.
std::string OnnxForms::embedding(const TracedOp& op) {
  return node("Gather", {in(op, 0), in(op, 1)}, {{"axis", int64_t{0}}});
}

std::string OnnxForms::linear(const TracedOp& op) {
  return node("Gemm", all_inputs(op), {{"transB", int64_t{1}}});
}

std::string OnnxForms::reshape(const TracedOp& op) {
  return reshaped(in(op, 0), op.input(0).extents(), op.result().extents());
}

/// Rows of (a N, …) become rows of (a, N, …), as N is not known.
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
  WISP_CHECK(!trace_.padded, "onnx: rows [", op.small.integer("begin"), ", ",
             op.small.integer("end"), ") of ", op.shape(0),
             ", which grow with the frames, expected all of them");
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

/// (N, C, H, W) -> (W, N, H, C): position by position, like packed rows.
std::string OnnxForms::pack_frames(const TracedOp& op) {
  check_frames(op, op.shape(0), op.small.output.shape());
  const std::string frames = node("Transpose", {in(op, 0)}, {{"perm", Ints{3, 0, 2, 1}}});
  return shaped(frames, op.result().extents());
}

std::string OnnxForms::unpack_frames(const TracedOp& op) {
  check_frames(op, op.small.output.shape(), op.shape(0));
  const Extents images = op.result().extents();
  const std::string frames = shaped(in(op, 0), {images[2], images[0], images[1], images[3]});
  return node("Transpose", {frames}, {{"perm", Ints{1, 3, 2, 0}}});
}

/// Width and channels, an image's last two extents, are not adjacent in ONNX.
std::string OnnxForms::swap_last(const TracedOp& op) {
  Ints order(static_cast<size_t>(op.shape(0).rank()));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (order.size() == 4) {
    std::swap(order[1], order[3]);
  } else {
    std::swap(order.end()[-1], order.end()[-2]);
  }
  return node("Transpose", {in(op, 0)}, {{"perm", order}});
}

/// The ONNX axis of the last extent, which is the channels in a value of rank 4.
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
