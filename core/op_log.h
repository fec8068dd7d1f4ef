// A log of a forward pass, op by op, in order. It is complete enough to export the model as another
// program's graph. record() fills it if Context::log is set. The log keeps every value alive. For
// the context's thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/autograd.h"

namespace wisp {

struct LoggedOp {
  std::string name;  // name of the function in core/ops.h
  std::vector<Variable> inputs;
  Variable output;
  std::map<std::string, double> attributes;
  std::vector<Tensor> more;  // further results, without a gradient

  /// Throws std::out_of_range if the attribute does not exist.
  int64_t integer(const std::string& attribute) const {
    return static_cast<int64_t>(attributes.at(attribute));
  }
};

}  // namespace wisp
