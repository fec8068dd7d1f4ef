// A translator of a model's ops to ONNX nodes. One thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/interchange/onnx_graph.h"
#include "apps/interchange/onnx_trace.h"

namespace wisp {

/// Writes the ops of a trace into a graph. A value of rank 4 is an image or the weights of a
/// convolution; it is channels first in ONNX.
class OnnxForms {
 public:
  /// `names`: the graph's names for the trace's ends. Weights that an op reads become initializers.
  OnnxForms(const OnnxTrace& trace, std::vector<std::string> names, OnnxGraph& graph);

  /// Adds an op, after the ops it depends on. Throws Error for an op without a form.
  void add(const TracedOp& op);
  /// The graph's name for an end or for the result of an added op.
  const std::string& name(size_t value);

 private:
  using Form = std::string (OnnxForms::*)(const TracedOp&);
  static const std::map<std::string, Form>& forms();

  std::string adaptive_avg_pool(const TracedOp& op);
  std::string add_values(const TracedOp& op) { return node("Add", {in(op, 0), in(op, 1)}); }
  std::string avg_pool2d(const TracedOp& op);
  std::string batch_norm(const TracedOp& op);
  std::string clipped_relu(const TracedOp& op);
  std::string columns(const TracedOp& op);
  std::string conv2d(const TracedOp& op);
  std::string embedding(const TracedOp& op);
  std::string flatten(const TracedOp& op) {
    return node("Flatten", {in(op, 0)}, {{"axis", int64_t{1}}});
  }
  std::string global_avg_pool(const TracedOp& op);
  std::string join_columns(const TracedOp& op);
  std::string join_rows(const TracedOp& op);
  std::string linear(const TracedOp& op);
  std::string max_pool2d(const TracedOp& op) { return node("MaxPool", {in(op, 0)}, window(op)); }
  std::string pack_frames(const TracedOp& op);
  std::string pad_channels(const TracedOp& op);
  std::string relu(const TracedOp& op) { return node("Relu", {in(op, 0)}); }
  std::string reshape(const TracedOp& op);
  std::string rnn(const TracedOp& op);
  std::string rows(const TracedOp& op);
  std::string sigmoid(const TracedOp& op) { return node("Sigmoid", {in(op, 0)}); }
  std::string swap_last(const TracedOp& op);
  std::string tanh(const TracedOp& op) { return node("Tanh", {in(op, 0)}); }
  std::string unpack_frames(const TracedOp& op);

  std::string rnn_position(const TracedOp& op);
  std::string rnn_sequence(const TracedOp& op);
  /// Stacks `parameters` of each direction of a recurrent layer (0 to 3: W of input and of state,
  /// their biases) as in ONNX: (directions, gates, ...), in its order of gates. The name is that of
  /// the first one plus `operand`.
  std::string stacked(const TracedOp& op, const char* operand,
                      const std::vector<size_t>& parameters);
  /// The index of input i among the trace's values. Throws Error unless it is a parameter or
  /// buffer.
  size_t weight(const TracedOp& op, size_t i) const;

  /// The name of an op's input, in the shape that the op saw.
  std::string in(const TracedOp& op, size_t i);
  std::vector<std::string> all_inputs(const TracedOp& op);
  /// `value` in another shape, with its elements in channels-last order.
  std::string reshaped(const std::string& value, const Extents& from, const Extents& to);
  /// `value` in another shape, with its elements in the graph's order.
  std::string shaped(const std::string& value, const Extents& to);
  std::string integers(const std::vector<int64_t>& values);
  std::string scalar(double value);
  std::string constant(const char* kind, const Tensor& values);
  std::string node(const char* type, std::vector<std::string> inputs,
                   std::vector<OnnxAttribute> attributes = {});
  static std::vector<OnnxAttribute> window(const TracedOp& op);
  static int64_t last_axis(const TracedOp& op);

  const OnnxTrace& trace_;
  std::vector<std::string> names_;  // by value; empty: not added yet
  std::vector<bool> written_;       // by end: whether an initializer has it
  OnnxGraph& graph_;
};

}  // namespace wisp
