// Computes what an ONNX graph says, in f64, node by node: the ops that models of sequences need, as
// onnx.ai's "Operators" describe them.
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

/// All values of the graph by name. Throws Error for inputs that are not of the declared extents
/// (those of one name, as "batch", are the same), and for a node that it does not know.
OnnxArrays evaluate(const OnnxFile& file, OnnxArrays inputs);

}  // namespace wisp
