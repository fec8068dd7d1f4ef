#include "apps/interchange/onnx_export.h"

#include <limits>
#include <map>
#include <set>

#include "apps/interchange/onnx_graph.h"
#include "core/channel_order.h"
#include "core/op_log.h"

namespace wisp {
namespace {

using Ints = std::vector<int64_t>;
using Names = std::vector<std::string>;

constexpr int64_t kRows = 2;  // of the batch that is traced

/// The ops that `result` depends on, in order.
std::vector<const LoggedOp*> ancestors(const std::vector<LoggedOp>& log, const Variable& result) {
  std::set<const autograd::Node*> wanted{result.node().get()};
  std::vector<const LoggedOp*> ops;
  for (auto op = log.rbegin(); op != log.rend(); ++op) {
    if (!wanted.count(op->output.node().get())) continue;
    for (const Variable& input : op->inputs) wanted.insert(input.node().get());
    ops.insert(ops.begin(), &*op);
  }
  return ops;
}

/// Writes ops into a graph. A value of rank 4 is an image or its weights: there channels first.
class Exporter {
 public:
  /// `constants`: names of what is no op's output, by where it lies.
  Exporter(OnnxGraph& graph, std::map<const std::byte*, std::string> constants)
      : graph_(graph), constants_(std::move(constants)) {}

  /// Throws Error for an op without a form.
  void add(const LoggedOp& op);

 private:
  using Form = std::string (Exporter::*)(const LoggedOp&);
  static const std::map<std::string, Form>& forms();

  std::string conv2d(const LoggedOp& op);
  std::string batch_norm(const LoggedOp& op);
  std::string relu(const LoggedOp& op) { return node("Relu", {in(op, 0)}); }
  std::string add_values(const LoggedOp& op) { return node("Add", {in(op, 0), in(op, 1)}); }
  std::string max_pool2d(const LoggedOp& op) { return node("MaxPool", {in(op, 0)}, window(op)); }
  std::string avg_pool2d(const LoggedOp& op);
  std::string global_avg_pool(const LoggedOp& op);
  std::string linear(const LoggedOp& op);
  std::string reshape(const LoggedOp& op);
  std::string pad_channels(const LoggedOp& op);

  /// The name of an op's input, which is an initializer from now on if it is a constant.
  std::string in(const LoggedOp& op, size_t i);
  std::string integers(const Ints& values);
  std::string node(const char* type, Names inputs, std::vector<OnnxAttribute> attributes = {});
  static std::vector<OnnxAttribute> window(const LoggedOp& op);

  OnnxGraph& graph_;
  std::map<const std::byte*, std::string> constants_;
  std::set<std::string> written_;                        // initializers
  std::map<const autograd::Node*, std::string> values_;  // outputs of ops
};

const std::map<std::string, Exporter::Form>& Exporter::forms() {
  static const std::map<std::string, Form> forms = {{"conv2d", &Exporter::conv2d},
                                                    {"batch_norm", &Exporter::batch_norm},
                                                    {"relu", &Exporter::relu},
                                                    {"add", &Exporter::add_values},
                                                    {"max_pool2d", &Exporter::max_pool2d},
                                                    {"avg_pool2d", &Exporter::avg_pool2d},
                                                    {"global_avg_pool", &Exporter::global_avg_pool},
                                                    {"linear", &Exporter::linear},
                                                    {"reshape", &Exporter::reshape},
                                                    {"pad_channels", &Exporter::pad_channels}};
  return forms;
}

void Exporter::add(const LoggedOp& op) {
  const auto form = forms().find(op.name);
  if (form == forms().end()) {
    std::string known;
    for (const auto& [name, ignored] : forms()) known += (known.empty() ? "" : ", ") + name;
    throw Error("onnx: there is no form for the op " + op.name + "; there is one for " + known);
  }
  values_[op.output.node().get()] = (this->*form->second)(op);
}

std::string Exporter::in(const LoggedOp& op, size_t i) {
  const Variable& variable = op.inputs.at(i);
  const auto value = values_.find(variable.node().get());
  if (value != values_.end()) return value->second;
  const auto constant = constants_.find(variable.value().raw());
  WISP_CHECK(constant != constants_.end(), "onnx: input ", i, " of ", op.name, ", ",
             variable.shape(),
             ", is neither an op's result nor a parameter, a buffer or the batch");
  const std::string& name = constant->second;
  if (name != graph_.input.name && written_.insert(name).second)
    graph_.initializers.emplace_back(name, channels_first(variable.value()));
  return name;
}

std::string Exporter::integers(const Ints& values) {
  const std::string name = concat("integers_", graph_.initializers.size());
  const Tensor tensor({static_cast<int64_t>(values.size())}, DType::i64);
  std::copy(values.begin(), values.end(), tensor.data<int64_t>());
  graph_.initializers.emplace_back(name, tensor);
  return name;
}

std::string Exporter::node(const char* type, Names inputs, std::vector<OnnxAttribute> attributes) {
  const std::string name = concat(type, "_", graph_.nodes.size());
  graph_.nodes.push_back({type, std::move(inputs), name, std::move(attributes)});
  return name;
}

std::vector<OnnxAttribute> Exporter::window(const LoggedOp& op) {
  const int64_t kernel = op.integer("kernel"), stride = op.integer("stride"),
                pad = op.integer("pad");
  return {{"kernel_shape", Ints{kernel, kernel}},
          {"strides", Ints{stride, stride}},
          {"pads", Ints(4, pad)}};
}

std::string Exporter::conv2d(const LoggedOp& op) {
  const Shape& weight = op.inputs[1].shape();
  return node("Conv", {in(op, 0), in(op, 1)},
              {{"kernel_shape", Ints{weight[1], weight[2]}},
               {"strides", Ints(2, op.integer("stride"))},
               {"pads", Ints(4, op.integer("pad"))},
               {"dilations", Ints(2, op.integer("dilation"))},
               {"group", op.integer("groups")}});
}

std::string Exporter::batch_norm(const LoggedOp& op) {
  const int rank = op.output.shape().rank();
  WISP_CHECK(rank == 2 || rank == 4, "onnx: batch_norm of ", op.output.shape(),
             ", expected rank 2 or 4, whose second extent there is the channels");
  const bool residual = op.integer("residual") != 0;
  const size_t mean = residual ? 4 : 3;
  std::string value =
      node("BatchNormalization", {in(op, 0), in(op, 1), in(op, 2), in(op, mean), in(op, mean + 1)},
           {{"epsilon", static_cast<float>(op.attributes.at("epsilon"))}});
  if (residual) value = node("Add", {value, in(op, 3)});
  return op.integer("relu") ? node("Relu", {value}) : value;
}

std::string Exporter::avg_pool2d(const LoggedOp& op) {
  std::vector<OnnxAttribute> attributes = window(op);
  attributes.push_back({"count_include_pad", int64_t{1}});
  return node("AveragePool", {in(op, 0)}, std::move(attributes));
}

std::string Exporter::global_avg_pool(const LoggedOp& op) {
  return node("Flatten", {node("GlobalAveragePool", {in(op, 0)})}, {{"axis", int64_t{1}}});
}

std::string Exporter::linear(const LoggedOp& op) {
  Names inputs;
  for (size_t i = 0; i < op.inputs.size(); ++i) inputs.push_back(in(op, i));
  return node("Gemm", std::move(inputs), {{"transB", int64_t{1}}});
}

/// Reshapes what lies channels last, as the op did.
std::string Exporter::reshape(const LoggedOp& op) {
  const Shape& from = op.inputs[0].shape();
  const Shape& to = op.output.shape();
  WISP_CHECK(to.rank() > 0 && from.rank() > 0 && to[0] == from[0], "onnx: reshape of ", from,
             " to ", to, ", expected to keep the batch, the first extent");
  std::string value = in(op, 0);
  if (from.rank() == 4) value = node("Transpose", {value}, {{"perm", Ints{0, 2, 3, 1}}});
  Ints shape{0};  // as it is
  for (int i = 1; i < to.rank(); ++i) shape.push_back(to[i]);
  value = node("Reshape", {value, integers(shape)});
  return to.rank() == 4 ? node("Transpose", {value}, {{"perm", Ints{0, 3, 1, 2}}}) : value;
}

std::string Exporter::pad_channels(const LoggedOp& op) {
  const int64_t stride = op.integer("stride"), before = op.integer("before");
  const int64_t after = op.output.shape()[3] - op.inputs[0].shape()[3] - before;
  std::string value = in(op, 0);
  if (stride > 1) {
    constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
    value = node("Slice", {value, integers({0, 0}), integers({kEnd, kEnd}), integers({2, 3}),
                           integers({stride, stride})});
  }
  return node("Pad", {value, integers({0, before, 0, 0, 0, after, 0, 0})});
}

}  // namespace

std::string onnx_model(Context context, Model& model, const FlatParameters& parameters,
                       const Facts& facts) {
  const Shape& sample = facts.image("onnx");
  const Tensor images({kRows, sample[0], sample[1], sample[2]}, parameters.dtype());
  const Batch batch{.inputs = {images},
                    .targets = Tensor({kRows}, DType::i32),
                    .samples = Tensor({kRows}, DType::i64),
                    .count = kRows};
  std::vector<LoggedOp> log;
  context.training = false;
  context.recording = false;
  context.log = &log;
  const Variable logits = model.forward(context, batch, {}).output;

  OnnxGraph graph{.name = "model",
                  .input = {"input", {sample[2], sample[0], sample[1]}},
                  .output = {"logits", {logits.shape()[1]}}};
  std::map<const std::byte*, std::string> constants{{images.raw(), graph.input.name}};
  for (const Segment& segment : parameters.all_segments())
    constants[FlatParameters::view(parameters.weight(), segment).raw()] =
        model.exchange_names(segment.name).front();
  for (const Buffer* buffer : parameters.buffers())
    constants[buffer->value.raw()] = model.exchange_names(buffer->name).front();
  Exporter exporter(graph, std::move(constants));
  for (const LoggedOp* op : ancestors(log, logits)) exporter.add(*op);
  WISP_CHECK(!graph.nodes.empty(), "onnx: the model's logits are no op's result");
  graph.nodes.back().output = graph.output.name;
  return graph.bytes();
}

}  // namespace wisp
