// A translator of a model's ops to ONNX nodes. One thread.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/interchange/onnx_graph.h"
#include "apps/interchange/onnx_trace.h"

namespace wisp {

/// Writes the ops of a trace into a graph. A value of rank 4 is an image or the weights of a
/// convolution; it is channels first in ONNX. Weights that an op reads become initializers.
class OnnxForms {
 public:
  /// `names`: the graph's names by value of the trace, empty but for the ends. `trace` and `graph`
  /// outlive this object.
  OnnxForms(const OnnxTrace& trace, std::vector<std::string> names, OnnxGraph& graph)
      : trace_(trace), names_(std::move(names)), graph_(graph) {}

  /// Adds an op, after the ops it depends on. Throws Error for an op without a form.
  void add(const TracedOp& op);
  /// The graph's name for an end or for the result of an added op.
  const std::string& name(size_t value);

  // For the forms.
  const OnnxTrace& trace() const { return trace_; }
  /// Names a further result of the op.
  void set_name(size_t value, std::string name) { names_[value] = std::move(name); }
  /// The name of an op's input, in the shape that the op saw.
  std::string in(const TracedOp& op, size_t i);
  std::vector<std::string> all_inputs(const TracedOp& op);

  // Each adds to the graph, and returns the name of what it added.
  /// `value` in another shape, with its elements in channels-last order.
  std::string reshaped(const std::string& value, const Extents& from, const Extents& to);
  /// `value` in another shape, with its elements in the graph's order.
  std::string shaped(const std::string& value, const Extents& to);
  std::string integers(const std::vector<int64_t>& values);
  std::string scalar(double value);
  std::string constant(const char* kind, const Tensor& values);
  /// Values made of a weight, under its name plus `operand`.
  std::string derived(size_t weight, const char* operand, const Tensor& values);
  std::string node(const char* type, std::vector<std::string> inputs,
                   std::vector<OnnxAttribute> attributes = {});

 private:
  const OnnxTrace& trace_;
  std::vector<std::string> names_;  // by value of the trace; empty: not added yet
  std::set<size_t> written_;        // weights that an initializer has
  OnnxGraph& graph_;
};

/// The form of a recurrent layer.
std::string rnn_form(OnnxForms& forms, const TracedOp& op);

}  // namespace wisp
