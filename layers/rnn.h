// A recurrent layer (LSTM, GRU or tanh) with one or two directions. Used by the thread of its
// context.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops.h"
#include "layers/module.h"

namespace wisp {

constexpr int64_t kMostRnnLayers = 1000;  // limit of a model; more would take minutes to name

struct RnnOptions {
  RnnCell cell = RnnCell::lstm;
  int64_t directions = 1;   // 2: y's second half reads from each sequence's end
  int64_t index = 0;        // number in the parameters' names: "weight_ih_l0"
  double init_range = 0.0;  // all start uniform in ± this; 0: ±1 / sqrt(hidden)
};

class Rnn final : public Module {
 public:
  /// Parameters have PyTorch's names. Biases have no weight decay.
  Rnn(int64_t inputs, int64_t hidden, const RnnOptions& options);

  /// Maps x (Σ rows, inputs) to y (Σ rows, directions · hidden) and the state after it; see rnn().
  RnnResult operator()(const Variable& x, const std::vector<int64_t>& rows,
                       const RnnState& before = {}) const;

 private:
  struct Direction {
    Parameter &input, &recurrent, &input_bias, &recurrent_bias;
  };

  RnnCell cell_;
  std::vector<Direction> directions_;
};

/// The cells by name, as the choices of a key.
inline std::vector<std::pair<std::string, RnnCell>> rnn_cells() {
  return {{"lstm", RnnCell::lstm}, {"gru", RnnCell::gru}, {"tanh", RnnCell::tanh}};
}

}  // namespace wisp
