// An evaluator of ONNX graphs in f64, node by node. It has the ops of sequence models and of the
// models with a pool before their linear layers, as onnx.ai's "Operators" describes them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/support/onnx_file.h"

namespace wisp {

struct OnnxArray {
  std::vector<int64_t> dims;
  std::vector<double> values;

  static OnnxArray of(const Tensor& tensor);
};
using OnnxArrays = std::map<std::string, OnnxArray>;

/// All values of the graph by name. Throws Error if inputs do not have the declared extents, or if
/// a node is unknown. Extents of one name, such as "batch", must be equal.
OnnxArrays evaluate(const OnnxFile& file, OnnxArrays inputs);

}  // namespace wisp
