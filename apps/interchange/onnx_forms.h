// A translator of a model's ops to ONNX nodes. One thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "apps/interchange/onnx_graph.h"
#include "apps/interchange/onnx_trace.h"

namespace wisp {

/// Writes the ops of a trace into a graph. A value of rank 4 is an image or the weights of a
/// convolution; it is channels first in ONNX. Weights that an op reads become initializers.
struct OnnxForms {
  const OnnxTrace& trace;
  OnnxGraph& graph;
  std::vector<std::string> names;  // the graph's, by value of the trace; empty: not added yet
  std::set<size_t> written = {};   // weights that an initializer has

  /// Adds an op, after the ops it depends on. Throws Error for an op without a form.
  void add(const TracedOp& op);
  /// The graph's name for an end or for the result of an added op.
  const std::string& name(size_t value);
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
  std::string node(const char* type, std::vector<std::string> inputs,
                   std::vector<OnnxAttribute> attributes = {});
};

/// The form of a recurrent layer.
std::string rnn_form(OnnxForms& forms, const TracedOp& op);

}  // namespace wisp
