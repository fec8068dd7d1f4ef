#include "apps/interchange/onnx_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/tensor/channel_order.h"

namespace wisp {
namespace {

using Ints = std::vector<int64_t>;
using Names = std::vector<std::string>;
/// Adds an op's nodes, and returns the name of its result.
using Form = std::function<std::string(OnnxForms& forms, const TracedOp& op)>;

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
  WISP_CHECK(packed[0] == images[0] * images[2], "onnx: ", op.name, " of ", packed[0],
             " frames in images ", images, ", expected sequences of full length");
}

/// The ONNX axis of the last extent, which is the channels in a value of rank 4.
int64_t last_axis(const TracedOp& op) {
  const int rank = op.shape(0).rank();
  return rank == 4 ? 1 : rank - 1;
}

/// One node that has the op's inputs.
Form node_of(const char* type, const std::vector<OnnxAttribute>& attributes = {}) {
  return [type, attributes](OnnxForms& forms, const TracedOp& op) {
    return forms.node(type, forms.all_inputs(op), attributes);
  };
}

/// A node that reads the windows of a pool.
Form pool(const char* type, const std::vector<OnnxAttribute>& more = {}) {
  return [type, more](OnnxForms& forms, const TracedOp& op) {
    const int64_t kernel = op.integer("kernel"), stride = op.integer("stride"),
                  pad = op.integer("pad");
    std::vector<OnnxAttribute> attributes{{"kernel_shape", Ints{kernel, kernel}},
                                          {"strides", Ints{stride, stride}},
                                          {"pads", Ints(4, pad)}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    return forms.node(type, {forms.in(op, 0)}, std::move(attributes));
  };
}

std::string conv2d_form(OnnxForms& forms, const TracedOp& op) {
  const Shape& weight = op.shape(1);
  const int64_t top = op.integer("pad_h"), left = op.integer("pad_w");
  return forms.node("Conv", forms.all_inputs(op),
                    {{"kernel_shape", Ints{weight[1], weight[2]}},
                     {"strides", Ints{op.integer("stride_h"), op.integer("stride_w")}},
                     {"pads", Ints{top, left, top, left}},
                     {"dilations", Ints{op.integer("dilation_h"), op.integer("dilation_w")}},
                     {"group", op.integer("groups")}});
}

/// In ONNX the second extent is the channels, so a value that is no image becomes a matrix.
std::string batch_norm_form(OnnxForms& forms, const TracedOp& op) {
  const Extents extents = op.input(0).extents();
  const Extents inside = extents.size() == 4 ? extents : matrix_of(extents);
  const bool residual = op.integer("residual") != 0;
  const size_t mean = residual ? 4 : 3;
  std::string value =
      forms.node("BatchNormalization",
                 {forms.reshaped(forms.in(op, 0), extents, inside), forms.in(op, 1),
                  forms.in(op, 2), forms.in(op, mean), forms.in(op, mean + 1)},
                 {{"epsilon", static_cast<float>(op.small.attributes.at("epsilon"))}});
  value = forms.reshaped(value, inside, extents);
  if (residual) value = forms.node("Add", {value, forms.in(op, 3)});
  return op.integer("relu") ? forms.node("Relu", {value}) : value;
}

std::string clipped_relu_form(OnnxForms& forms, const TracedOp& op) {
  return forms.node(
      "Clip", {forms.in(op, 0), forms.scalar(0.0), forms.scalar(op.small.attributes.at("bound"))});
}

std::string global_avg_pool_form(OnnxForms& forms, const TracedOp& op) {
  return forms.node("Flatten", {forms.node("GlobalAveragePool", {forms.in(op, 0)})},
                    {{"axis", int64_t{1}}});
}

/// ONNX has no windows of unequal sizes, so the means along each axis are a product with a matrix.
std::string adaptive_avg_pool_form(OnnxForms& forms, const TracedOp& op) {
  const Shape &from = op.shape(0), &to = op.small.output.shape();
  const std::string of_rows =
      forms.constant("matrix", window_means(from[1], to[1], /*by_row=*/true));
  const std::string rows = forms.node("MatMul", {of_rows, forms.in(op, 0)});
  return forms.node("MatMul", {rows, forms.constant("matrix", window_means(from[2], to[2],
                                                                           /*by_row=*/false))});
}

std::string reshape_form(OnnxForms& forms, const TracedOp& op) {
  return forms.reshaped(forms.in(op, 0), op.input(0).extents(), op.result().extents());
}

/// Rows of (a N, …) become rows of (a, N, …), as N is not known.
std::string rows_form(OnnxForms& forms, const TracedOp& op) {
  const Extent all = op.input(0).extents()[0], begin = op.extent("begin"), end = op.extent("end");
  const std::string value = forms.in(op, 0);
  if (begin.number == 0 && end == all) return value;
  for (const Extent& bound : {begin, end}) {
    WISP_CHECK(
        bound.number == 0 || bound.of_batch == all.of_batch, "onnx: rows [",
        op.small.integer("begin"), ", ", op.small.integer("end"), ") of ", op.shape(0),
        all.of_batch ? ", expected multiples of the batch" : ", expected the same for each batch");
  }
  const auto slice = [&](const std::string& whole) {
    return forms.node("Slice", {whole, forms.integers({begin.number}), forms.integers({end.number}),
                                forms.integers({0})});
  };
  if (!all.of_batch) return slice(value);
  WISP_CHECK(!forms.trace().padded, "onnx: rows [", op.small.integer("begin"), ", ",
             op.small.integer("end"), ") of ", op.shape(0),
             ", which grow with the frames, expected all of them");
  const Extents extents = op.input(0).extents();
  WISP_CHECK(std::none_of(extents.begin() + 1, extents.end(), [](Extent e) { return e.of_batch; }),
             "onnx: rows of ", op.shape(0), ", expected one extent that grows with the batch");
  const Shape row = channels_first(op.shape(0));
  Ints split{all.number, -1}, joined{-1};
  split.insert(split.end(), row.begin() + 1, row.end());
  joined.insert(joined.end(), row.begin() + 1, row.end());
  const std::string apart = forms.node("Reshape", {value, forms.integers(split)});
  return forms.node("Reshape", {slice(apart), forms.integers(joined)});
}

std::string joined(OnnxForms& forms, const TracedOp& op, int64_t axis) {
  if (op.inputs.size() == 1) return forms.in(op, 0);
  return forms.node("Concat", forms.all_inputs(op), {{"axis", axis}});
}

std::string join_rows_form(OnnxForms& forms, const TracedOp& op) { return joined(forms, op, 0); }

std::string join_columns_form(OnnxForms& forms, const TracedOp& op) {
  return joined(forms, op, last_axis(op));
}

/// (N, C, H, W) -> (W, N, H, C): position by position, like packed rows.
std::string pack_frames_form(OnnxForms& forms, const TracedOp& op) {
  check_frames(op, op.shape(0), op.small.output.shape());
  const std::string frames =
      forms.node("Transpose", {forms.in(op, 0)}, {{"perm", Ints{3, 0, 2, 1}}});
  return forms.shaped(frames, op.result().extents());
}

std::string unpack_frames_form(OnnxForms& forms, const TracedOp& op) {
  check_frames(op, op.small.output.shape(), op.shape(0));
  const Extents images = op.result().extents();
  const std::string frames =
      forms.shaped(forms.in(op, 0), {images[2], images[0], images[1], images[3]});
  return forms.node("Transpose", {frames}, {{"perm", Ints{1, 3, 2, 0}}});
}

/// Width and channels, an image's last two extents, are not adjacent in ONNX.
std::string swap_last_form(OnnxForms& forms, const TracedOp& op) {
  Ints order(static_cast<size_t>(op.shape(0).rank()));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (order.size() == 4) {
    std::swap(order[1], order[3]);
  } else {
    std::swap(order.end()[-1], order.end()[-2]);
  }
  return forms.node("Transpose", {forms.in(op, 0)}, {{"perm", order}});
}

std::string columns_form(OnnxForms& forms, const TracedOp& op) {
  return forms.node("Slice",
                    {forms.in(op, 0), forms.integers({op.integer("begin")}),
                     forms.integers({op.integer("end")}), forms.integers({last_axis(op)})});
}

std::string pad_channels_form(OnnxForms& forms, const TracedOp& op) {
  const int64_t stride = op.integer("stride"), before = op.integer("before");
  const int64_t after = op.small.output.shape()[3] - op.shape(0)[3] - before;
  std::string value = forms.in(op, 0);
  if (stride > 1) {
    constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
    value = forms.node("Slice", {value, forms.integers({0, 0}), forms.integers({kEnd, kEnd}),
                                 forms.integers({2, 3}), forms.integers({stride, stride})});
  }
  return forms.node("Pad", {value, forms.integers({0, before, 0, 0, 0, after, 0, 0})});
}

const std::map<std::string, Form>& known_forms() {
  static const std::map<std::string, Form> forms{
      {"adaptive_avg_pool", adaptive_avg_pool_form},
      {"add", node_of("Add")},
      {"avg_pool2d", pool("AveragePool", {{"count_include_pad", int64_t{1}}})},
      {"batch_norm", batch_norm_form},
      {"clipped_relu", clipped_relu_form},
      {"columns", columns_form},
      {"conv2d", conv2d_form},
      // in ONNX an id outside the table is an error or another row, not zeros
      {"embedding", node_of("Gather", {{"axis", int64_t{0}}})},
      {"flatten", node_of("Flatten", {{"axis", int64_t{1}}})},
      {"global_avg_pool", global_avg_pool_form},
      {"join_columns", join_columns_form},
      {"join_rows", join_rows_form},
      {"linear", node_of("Gemm", {{"transB", int64_t{1}}})},
      {"max_pool2d", pool("MaxPool")},
      {"pack_frames", pack_frames_form},
      {"pad_channels", pad_channels_form},
      {"relu", node_of("Relu")},
      {"reshape", reshape_form},
      {"rnn", rnn_form},
      {"rows", rows_form},
      {"sigmoid", node_of("Sigmoid")},
      {"swap_last", swap_last_form},
      {"tanh", node_of("Tanh")},
      {"unpack_frames", unpack_frames_form}};
  return forms;
}

}  // namespace

void OnnxForms::add(const TracedOp& op) {
  const std::map<std::string, Form>& forms = known_forms();
  const auto form = forms.find(op.name);
  if (form == forms.end()) {
    std::string known;
    for (const auto& [name, ignored] : forms) known += (known.empty() ? "" : ", ") + name;
    throw Error("onnx: there is no form for the op " + op.name + "; there is one for " + known);
  }
  names_[op.output] = form->second(*this, op);
}

const std::string& OnnxForms::name(size_t value) {
  if (trace_.is_weight(value) && written_.insert(value).second)
    graph_.initializers.emplace_back(names_[value], channels_first(trace_.values[value].small));
  WISP_CHECK(
      !names_[value].empty(),
      "onnx: the model uses the final state of a recurrent layer over whole sequences, of which "
      "ONNX export has only the output");
  return names_[value];
}

std::string OnnxForms::in(const TracedOp& op, size_t i) {
  const std::optional<size_t> from = op.inputs.at(i);
  WISP_CHECK(from, "onnx: input ", i, " of ", op.name, ", ", op.shape(i),
             ", is neither an op's result nor a parameter, a buffer, a state or an input of the "
             "model");
  return reshaped(name(*from), trace_.values[*from].extents(), op.input(i).extents());
}

Names OnnxForms::all_inputs(const TracedOp& op) {
  Names inputs;
  for (size_t i = 0; i < op.inputs.size(); ++i) inputs.push_back(in(op, i));
  return inputs;
}

std::string OnnxForms::reshaped(const std::string& value, const Extents& from, const Extents& to) {
  if (from == to) return value;
  std::string last = from.size() == 4 ? node("Transpose", {value}, {{"perm", kToLast}}) : value;
  last = shaped(last, to);
  return to.size() == 4 ? node("Transpose", {last}, {{"perm", kToFirst}}) : last;
}

std::string OnnxForms::shaped(const std::string& value, const Extents& to) {
  Ints shape;
  for (const Extent& extent : to) shape.push_back(extent.of_batch ? -1 : extent.number);
  WISP_CHECK(std::ranges::count(shape, -1) <= 1, "onnx: a reshape of ", value,
             " to a shape with the batch in two extents, expected it in one");
  return node("Reshape", {value, integers(shape)});
}

std::string OnnxForms::integers(const Ints& values) {
  const Tensor tensor({std::ssize(values)}, DType::i64);
  std::ranges::copy(values, tensor.data<int64_t>());
  return constant("integers", tensor);
}

std::string OnnxForms::scalar(double value) {
  const Tensor tensor({}, DType::f64);
  *tensor.data<double>() = value;
  return constant("scalar", tensor);
}

std::string OnnxForms::derived(size_t weight, const char* operand, const Tensor& values) {
  graph_.initializers.emplace_back(concat(names_[weight], ".", operand), values);
  return graph_.initializers.back().first;
}

std::string OnnxForms::constant(const char* kind, const Tensor& values) {
  graph_.initializers.emplace_back(concat(kind, "_", graph_.initializers.size()), values);
  return graph_.initializers.back().first;
}

std::string OnnxForms::node(const char* type, Names inputs, std::vector<OnnxAttribute> attributes) {
  graph_.nodes.push_back(
      {type, std::move(inputs), concat(type, "_", graph_.nodes.size()), std::move(attributes)});
  return graph_.nodes.back().output;
}

}  // namespace wisp
