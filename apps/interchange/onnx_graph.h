// A graph of an ONNX file, and its encoding as bytes. Plain values. Source: onnx.ai, "Open Neural
// Network Exchange intermediate representation", and onnx.proto3 for the field numbers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"

namespace wisp {

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

struct OnnxNode {
  std::string type;  // "Conv"
  std::vector<std::string> inputs;
  std::string output;  // also the node's name
  std::vector<OnnxAttribute> attributes;
};

/// An input or output of the graph.
struct OnnxValue {
  std::string name;
  DType dtype = DType::f32;                                 // f32, f64 (written as f32), i32 or i64
  std::vector<std::variant<int64_t, std::string>> extents;  // a number, or a name if variable
};

struct OnnxGraph {
  static constexpr int64_t kOpset = 17;

  std::vector<OnnxValue> inputs, outputs;
  std::vector<OnnxNode> nodes;                               // in order of computation
  std::vector<std::pair<std::string, Tensor>> initializers;  // f32, f64 (written as f32) or i64

  /// The content of the file. Throws Error if two values have the same name, for other types, and
  /// beyond 2 GiB, the format's limit.
  std::string bytes() const;
};

}  // namespace wisp
