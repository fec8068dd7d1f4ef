// What each op is in ONNX. One thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/interchange/onnx_graph.h"
#include "apps/interchange/onnx_trace.h"

namespace wisp {

/// Writes the ops of a trace into a graph. A value of rank 4 is an image or its weights: there
/// channels first.
class OnnxForms {
 public:
  /// `names`: what the trace's ends are called there; weights that an op reads become initializers.
  OnnxForms(const OnnxTrace& trace, std::vector<std::string> names, OnnxGraph& graph);

  /// The ops before this one have been added. Throws Error for an op without a form.
  void add(const TracedOp& op);
  /// What a value is called that an end or an added op gives.
  const std::string& name(size_t value);

 private:
  using Form = std::string (OnnxForms::*)(const TracedOp&);
  static const std::map<std::string, Form>& forms();

  std::string add_values(const TracedOp& op) { return node("Add", {in(op, 0), in(op, 1)}); }
  std::string avg_pool2d(const TracedOp& op);
  std::string batch_norm(const TracedOp& op);
  std::string clipped_relu(const TracedOp& op);
  std::string columns(const TracedOp& op);
  std::string conv2d(const TracedOp& op);
  std::string embedding(const TracedOp& op);
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
  /// Of a recurrent layer, each direction's `parameters` (0 to 3: W of the input and of the state,
  /// their biases) as ONNX has them, (directions, gates, ...), in its order of gates. The name is
  /// the first one's with `operand` behind.
  std::string stacked(const TracedOp& op, const char* operand,
                      const std::vector<size_t>& parameters);
  /// What input i is. Throws Error unless it is a parameter or buffer.
  size_t weight(const TracedOp& op, size_t i) const;

  /// The name of an op's input, in the shape that the op saw.
  std::string in(const TracedOp& op, size_t i);
  std::vector<std::string> all_inputs(const TracedOp& op);
  /// The elements of what lies channels last in another shape, as a reshape there.
  std::string reshaped(const std::string& value, const Extents& from, const Extents& to);
  /// The elements in the order in which they lie there.
  std::string shaped(const std::string& value, const Extents& to);
  std::string integers(const std::vector<int64_t>& values);
  std::string scalar(double value);
  std::string node(const char* type, std::vector<std::string> inputs,
                   std::vector<OnnxAttribute> attributes = {});
  static std::vector<OnnxAttribute> window(const TracedOp& op);
  static int64_t last_axis(const TracedOp& op);

  const OnnxTrace& trace_;
  std::vector<std::string> names_;  // by value; empty: not added yet
  std::vector<bool> written_;       // by end: whether it is in the graph
  OnnxGraph& graph_;
};

}  // namespace wisp
