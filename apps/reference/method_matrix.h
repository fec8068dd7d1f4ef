// Which compression method goes with which optimizer, accumulation, precision, scope and number of
// workers. Nothing is listed by hand: each cell is a configuration that is prepared as a run's is.
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
  std::string refusal;               // why such a run is refused; empty: it is not
  std::vector<std::string> remarks;  // what it would be told
};

/// What Prepared has to say of the cell's run.
Verdict judge(const MatrixCell& cell);

/// A row for each method that a run can choose; a column for each choice, the others as in
/// MatrixCell, but adamw for methods that need it. The reasons stand below.
std::string method_matrix();

}  // namespace wisp
