// A recurrent layer's cell, shape, weights and state, which are plain values, and the backend's
// object for such layers (core/backend.h).
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "core/autograd.h"

namespace wisp {

/// The computation at one position. s is the sigmoid, products are elementwise, and ' marks the
/// position before.
///   tanh  h = tanh(a)
///   lstm  c = f c' + i g, h = o tanh(c); i, f, o = s(a), g = tanh(a), in the order i, f, g, o
///   gru   h = (1 - z) n + z h'; r, z = s(a), n = tanh(ax + r ah), in the order r, z, n
/// a = ax + ah, where ax = W x + b of the input and ah = W h' + b of the state. r is placed as in
/// PyTorch and cuDNN. Source: Elman 1990; Gers et al. 2000; Cho et al. 2014.
enum class RnnCell { tanh, lstm, gru };

/// A layer over packed sequences, the longest first, stored position by position: x is (sum of
/// rows, I), y (sum of rows, directions H).
struct RnnSpec {
  RnnCell cell = RnnCell::lstm;
  int64_t inputs = 0, hidden = 0;
  int64_t directions = 1;     // 2: the second one reads backward, and its outputs follow the first
                              // one's in each row of y
  std::vector<int64_t> rows;  // sequences that reach each position, never increasing

  int64_t gates() const { return cell == RnnCell::lstm ? 4 : cell == RnnCell::gru ? 3 : 1; }
  int64_t sequences() const { return rows.empty() ? 0 : rows.front(); }
  int64_t total_rows() const { return std::accumulate(rows.begin(), rows.end(), int64_t{0}); }
  bool operator==(const RnnSpec&) const = default;
};

/// The rows of a position, and of the one that a direction reads before it.
struct RnnPosition {
  int64_t first = 0, rows = 0;
  int64_t earlier = 0, earlier_rows = 0;  // the first sequences have an earlier row
};

/// The positions in the order in which a direction reads them.
inline std::vector<RnnPosition> positions_of(const RnnSpec& spec, int64_t direction) {
  std::vector<RnnPosition> positions;
  int64_t row = 0;
  for (const int64_t rows : spec.rows) {
    positions.push_back({row, rows});
    row += rows;
  }
  if (direction == 1) std::reverse(positions.begin(), positions.end());
  for (size_t i = 1; i < positions.size(); ++i) {
    positions[i].earlier = positions[i - 1].first;
    positions[i].earlier_rows = std::min(positions[i].rows, positions[i - 1].rows);
  }
  return positions;
}

/// Throws Error with the name `op` unless `rows` are positive and never increase.
inline void check_rows(const char* op, const std::vector<int64_t>& rows) {
  WISP_CHECK(!rows.empty() && rows.back() > 0, op, ": no sequences");
  for (size_t t = 1; t < rows.size(); ++t) {
    WISP_CHECK(rows[t] <= rows[t - 1], op, ": ", rows[t], " sequences reach position ", t, " and ",
               rows[t - 1], " the one before, expected the longest first");
  }
}

/// State of a layer: each tensor is (directions, sequences, H), of the activations' type. From
/// position to position, a call keeps c in the wide type.
struct RnnState {
  Tensor h;
  Tensor c;  // undefined except for lstm
};

/// Weights of one direction, as in PyTorch and cuDNN: (gates H, I), (gates H, H) and two biases
/// (gates H). The matrices may have the activations' type if Backend::reads_rounded_weights().
struct RnnWeights {
  Tensor input, recurrent, input_bias, recurrent_bias;
};
/// Destinations of the weights' gradients; `into` is undefined for one that is not wanted.
struct RnnGradients {
  GradSlot input, recurrent, input_bias, recurrent_bias;
};

class RecurrentLayers {
 public:
  virtual ~RecurrentLayers() = default;
  /// Bytes of `saved`, which rnn() fills for the backward pass. rnn_dx() also leaves in it the data
  /// for rnn_dw().
  virtual int64_t rnn_saved_bytes(const RnnSpec&, DType activations) const = 0;
  /// `weights` has one entry per direction. `after` gets each sequence's state after its last
  /// position (second direction: after its first). `saved` is (rnn_saved_bytes) u8, or undefined if
  /// no backward pass follows.
  virtual void rnn(const Stream&, const RnnSpec&, const Tensor& x,
                   std::span<const RnnWeights> weights, const RnnState& before, Tensor& y,
                   RnnState& after, Tensor& saved) = 0;
  /// dx is not wanted if its slot has no tensor. No gradient reaches the states.
  virtual void rnn_dx(const Stream&, const RnnSpec&, const Tensor& y, const Tensor& dy,
                      std::span<const RnnWeights> weights, const RnnState& before, Tensor& saved,
                      const GradSlot& dx) = 0;
  /// Call it after rnn_dx(), also if dx was not wanted.
  virtual void rnn_dw(const Stream&, const RnnSpec&, const Tensor& x, const Tensor& y,
                      const RnnState& before, const Tensor& saved,
                      std::span<const RnnGradients> gradients) = 0;
};

}  // namespace wisp
