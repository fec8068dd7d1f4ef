#include "apps/interchange/onnx_graph.h"

#include <set>

#include "apps/version.h"
#include "core/io/protobuf.h"

namespace wisp {
namespace {

constexpr int64_t kIrVersion = 8;  // version of opset 17's release

/// The number in TensorProto.DataType.
int64_t type_of(DType dtype, const std::string& name) {
  constexpr int64_t kFloat = 1, kInt32 = 6, kInt64 = 7;
  if (dtype == DType::f32 || dtype == DType::f64) return kFloat;
  if (dtype == DType::i32) return kInt32;
  WISP_CHECK(dtype == DType::i64, "onnx: ", name, " is ", name_of(dtype),
             ", expected f32, f64, i32 or i64");
  return kInt64;
}

ProtobufWriter attribute_message(const OnnxAttribute& attribute) {
  constexpr int kName = 1, kF = 2, kI = 3, kS = 4, kInts = 8, kType = 20;
  constexpr int64_t kTypeFloat = 1, kTypeInt = 2, kTypeString = 3, kTypeInts = 7;
  ProtobufWriter message = ProtobufWriter().bytes(kName, attribute.name);
  if (const auto* number = std::get_if<float>(&attribute.value)) {
    message.f32(kF, *number).varint(kType, kTypeFloat);
  } else if (const auto* integer = std::get_if<int64_t>(&attribute.value)) {
    message.varint(kI, *integer).varint(kType, kTypeInt);
  } else if (const auto* word = std::get_if<std::string>(&attribute.value)) {
    message.bytes(kS, *word).varint(kType, kTypeString);
  } else {
    for (const int64_t value : std::get<std::vector<int64_t>>(attribute.value))
      message.varint(kInts, value);
    message.varint(kType, kTypeInts);
  }
  return message;
}

ProtobufWriter node_message(const OnnxNode& node) {
  constexpr int kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5;
  ProtobufWriter message;
  for (const std::string& input : node.inputs) message.bytes(kInput, input);
  message.bytes(kOutput, node.output);
  message.bytes(kName, node.output);
  message.bytes(kOpType, node.type);
  for (const OnnxAttribute& attribute : node.attributes)
    message.message(kAttribute, attribute_message(attribute));
  return message;
}

Tensor without_f64(const Tensor& tensor) {
  if (tensor.dtype() != DType::f64) return tensor;
  Tensor result(tensor.shape(), DType::f32);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    result.data<float>()[i] = static_cast<float>(tensor.data<double>()[i]);
  return result;
}

ProtobufWriter tensor_message(const std::string& name, const Tensor& tensor) {
  constexpr int kDims = 1, kDataType = 2, kName = 8, kRawData = 9;
  const Tensor data = without_f64(tensor);
  ProtobufWriter message;
  for (int i = 0; i < data.shape().rank(); ++i) message.varint(kDims, data.shape()[i]);
  message.varint(kDataType, type_of(data.dtype(), name));
  message.bytes(kName, name);
  message.bytes(kRawData, {reinterpret_cast<const char*>(data.raw()),  // little-endian
                           static_cast<size_t>(data.bytes())});
  return message;
}

ProtobufWriter value_message(const OnnxValue& value) {
  constexpr int kName = 1, kType = 2;
  constexpr int kTensorType = 1, kElemType = 1, kShape = 2, kDim = 1, kDimValue = 1, kDimParam = 2;
  ProtobufWriter shape;
  for (const auto& extent : value.extents) {
    const auto* number = std::get_if<int64_t>(&extent);
    shape.message(kDim, number ? ProtobufWriter().varint(kDimValue, *number)
                               : ProtobufWriter().bytes(kDimParam, std::get<std::string>(extent)));
  }
  const int64_t element = type_of(value.dtype, value.name);
  const auto tensor = ProtobufWriter().varint(kElemType, element).message(kShape, shape);
  const auto type = ProtobufWriter().message(kTensorType, tensor);
  return ProtobufWriter().bytes(kName, value.name).message(kType, type);
}

ProtobufWriter graph_message(const OnnxGraph& graph) {
  constexpr int kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
  ProtobufWriter message;
  for (const OnnxNode& node : graph.nodes) message.message(kNode, node_message(node));
  message.bytes(kName, "model");
  for (const auto& [name, tensor] : graph.initializers)
    message.message(kInitializer, tensor_message(name, tensor));
  for (const OnnxValue& input : graph.inputs) message.message(kInput, value_message(input));
  for (const OnnxValue& output : graph.outputs) message.message(kOutput, value_message(output));
  return message;
}

void check_names(const OnnxGraph& graph) {
  std::set<std::string> taken;
  const auto take = [&](const std::string& name) {
    WISP_CHECK(taken.insert(name).second, "onnx: two values are called ", name,
               ", expected a name of its own for each");
  };
  for (const OnnxValue& input : graph.inputs) take(input.name);
  for (const auto& [name, tensor] : graph.initializers) take(name);
  for (const OnnxNode& node : graph.nodes) take(node.output);
}

}  // namespace

std::string OnnxGraph::bytes() const {
  constexpr int kIr = 1, kProducer = 2, kProducerVersion = 3, kGraph = 7, kOpsetImport = 8;
  constexpr int kOpsetDomain = 1, kOpsetVersion = 2;
  check_names(*this);
  ProtobufWriter model;
  model.varint(kIr, kIrVersion);
  model.bytes(kProducer, "wisp");
  model.bytes(kProducerVersion, program_version());
  model.message(kGraph, graph_message(*this));
  model.message(kOpsetImport,
                ProtobufWriter().bytes(kOpsetDomain, "").varint(kOpsetVersion, kOpset));
  WISP_CHECK(model.text().size() < size_t{1} << 31, "an ONNX file of ", model.text().size(),
             " bytes, the format ends at 2 GiB");
  return model.text();
}

}  // namespace wisp
