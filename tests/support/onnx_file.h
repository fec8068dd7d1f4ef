// A parsed ONNX file, for tests of exports. Field numbers are those of onnx.proto3.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/protobuf_reader.h"

namespace wisp {

struct OnnxFile {
  static constexpr int kGraph = 7, kNode = 1, kInitializer = 5, kInput = 11, kOutput = 12;
  static constexpr int kNodeInput = 1, kNodeOutput = 2, kOpType = 4, kAttribute = 5;
  static constexpr int kDims = 1, kDataType = 2, kTensorName = 8, kRawData = 9;

  explicit OnnxFile(const std::string& bytes) : model(bytes), graph(model.message(kGraph)) {
    for (size_t i = 0; i < graph.count(kNode); ++i) nodes.push_back(graph.message(kNode, i));
    for (size_t i = 0; i < graph.count(kInitializer); ++i) {
      const ProtobufFields tensor = graph.message(kInitializer, i);
      initializers.emplace(tensor.text(kTensorName), tensor);
    }
  }

  /// The nodes, one per line: "Conv(input, conv1.weight) -> Conv_0".
  std::string str() const {
    std::string lines;
    for (const ProtobufFields& node : nodes) {
      lines += concat(node.text(kOpType), "(");
      for (size_t i = 0; i < node.count(kNodeInput); ++i)
        lines += concat(i ? ", " : "", node.text(kNodeInput, i));
      lines += concat(") -> ", node.text(kNodeOutput), "\n");
    }
    return lines;
  }
  /// Attributes of a node by name: integers, or one number.
  std::map<std::string, std::vector<int64_t>> attributes(size_t node) const {
    std::map<std::string, std::vector<int64_t>> found;
    for (size_t i = 0; i < nodes[node].count(kAttribute); ++i) {
      const ProtobufFields attribute = nodes[node].message(kAttribute, i);
      for (const int field : {2, 3, 8}) {  // f as bits, i, ints
        if (attribute.numbers.count(field)) {
          for (const uint64_t number : attribute.numbers.at(field))
            found[attribute.text(1)].push_back(static_cast<int64_t>(number));
        }
      }
    }
    return found;
  }
  /// Attributes of a node that are strings.
  std::map<std::string, std::string> words(size_t node) const {
    std::map<std::string, std::string> found;
    for (size_t i = 0; i < nodes[node].count(kAttribute); ++i) {
      const ProtobufFields attribute = nodes[node].message(kAttribute, i);
      if (attribute.count(4)) found[attribute.text(1)] = attribute.text(4);
    }
    return found;
  }
  std::vector<int64_t> dims(const std::string& initializer) const {
    const auto& numbers = initializers.at(initializer).numbers;
    if (!numbers.count(kDims)) return {};
    return {numbers.at(kDims).begin(), numbers.at(kDims).end()};
  }
  template <class T>
  std::vector<T> data(const std::string& initializer) const {
    const std::string& raw = initializers.at(initializer).text(kRawData);
    std::vector<T> numbers(raw.size() / sizeof(T));
    std::memcpy(numbers.data(), raw.data(), raw.size());
    return numbers;
  }
  /// Name, element type and extents of all inputs (kInput) or outputs: "input 1 batch 3 32 32".
  std::vector<std::string> ends(int field) const {
    std::vector<std::string> found;
    for (size_t end = 0; end < graph.count(field); ++end) {
      const ProtobufFields value = graph.message(field, end);
      const ProtobufFields type = value.message(2).message(1);
      const ProtobufFields shape = type.message(2);
      std::string& text = found.emplace_back(concat(value.text(1), " ", type.number(1)));
      for (size_t i = 0; i < shape.count(1); ++i) {
        const ProtobufFields dim = shape.message(1, i);
        text += concat(" ", dim.count(2) ? dim.text(2) : concat(dim.number(1)));
      }
    }
    return found;
  }

  ProtobufFields model, graph;
  std::vector<ProtobufFields> nodes;
  std::map<std::string, ProtobufFields> initializers;
};

}  // namespace wisp
