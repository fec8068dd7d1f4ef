// A table of the optimizers, accumulation, precisions, scopes and numbers of workers that each
// compression method works with. Each cell is a configuration, prepared as a run's is; nothing is
// listed by hand. One thread.
#pragma once

#include <string>
#include <vector>

#include "core/io/config.h"

namespace wisp {

struct MatrixCell {
  std::string method;
  std::string optimizer = "sgd";  // sgd (with momentum), nesterov or adamw
  int64_t accumulate = 1;
  std::string precision = "f32";
  std::string scope = "layer";
  int workers = 4;

  /// A small run with these choices, on the reference backend.
  Config config() const;
};

struct Verdict {
  std::string refusal;               // why the run is refused; empty: it is not
  std::vector<std::string> remarks;  // remarks the run would get
};

/// Prepares the cell's run, and returns its refusal or its remarks.
Verdict judge(const MatrixCell& cell);

/// One row per method that a run can choose, one column per choice. Other choices are those of
/// MatrixCell, except adamw for methods that need it. The reasons follow the table.
std::string method_matrix();

}  // namespace wisp
