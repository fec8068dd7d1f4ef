// A multi-layer perceptron on flattened samples: the smallest model, for tests and examples. It has
// no batch statistics, so N workers with B rows each compute the same as one worker with N·B rows.
// One thread.
#pragma once

#include <deque>
#include <vector>

#include "layers/linear.h"
#include "models/classifier.h"

namespace wisp {

struct MlpOptions {
  std::vector<int64_t> hidden = {128};  // width of each hidden layer
  ClassifierOptions classifier{};
};

class Mlp final : public Classifier {
 public:
  Mlp(const MlpOptions& options, const Facts& facts);

 private:
  Variable logits(const Variable& input) const override;
  std::deque<Linear> layers_;
};

}  // namespace wisp
