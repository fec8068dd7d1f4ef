// What a forward pass computed, op by op, in order: enough to write a model down as another
// program's graph. Filled by record() where Context::log points to it; keeps every value alive.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/autograd.h"

namespace wisp {

struct LoggedOp {
  std::string name;  // of the function in core/ops.h
  std::vector<Variable> inputs;
  Variable output;
  std::map<std::string, double> attributes;
  std::vector<Tensor> more;  // results beside the output, without a gradient

  /// Throws std::out_of_range if there is none.
  int64_t integer(const std::string& attribute) const {
    return static_cast<int64_t>(attributes.at(attribute));
  }
};

}  // namespace wisp
