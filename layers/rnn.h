// A recurrent layer: LSTM, GRU or a plain net, one way or both. Used by the thread of its context.
#pragma once

#include <vector>

#include "core/ops.h"
#include "layers/module.h"

namespace wisp {

constexpr int64_t kMostRnnLayers = 1000;  // of a model: more would take minutes to be named

struct RnnOptions {
  RnnCell cell = RnnCell::lstm;
  int64_t directions = 1;   // 2: also from each sequence's end; y has it behind the first
  int64_t index = 0;        // in the names, "weight_ih_l0": several layers may be one child
  double init_range = 0.0;  // all starts uniform in ± this; 0: 1 / sqrt(hidden)
};

class Rnn final : public Module {
 public:
  /// Parameters are named as PyTorch's. No weight decay on biases.
  Rnn(int64_t inputs, int64_t hidden, const RnnOptions& options);

  /// x (Σ rows, inputs) -> y (Σ rows, directions · hidden) and the state behind; see rnn().
  RnnResult operator()(const Variable& x, const std::vector<int64_t>& rows,
                       const RnnState& before = {}) const;

 private:
  struct Direction {
    Parameter &input, &recurrent, &input_bias, &recurrent_bias;
  };

  RnnCell cell_;
  std::vector<Direction> directions_;
};

/// lstm, gru or tanh. Throws Error with these names for another; `key` tells where it was found.
RnnCell rnn_cell_named(const std::string& name, const std::string& key);

}  // namespace wisp
