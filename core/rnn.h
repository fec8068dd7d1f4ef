// What a recurrent layer is: its cell, its shape, its weights and what it has in mind. Values.
#pragma once

#include <numeric>
#include <vector>

#include "core/autograd.h"

namespace wisp {

/// What a position computes; s is the sigmoid, products are by element, ' marks the position
/// before.
///   tanh  h = tanh(a)
///   lstm  c = f c' + i g, h = o tanh(c); i, f, o = s(a), g = tanh(a), in the order i, f, g, o
///   gru   h = (1 - z) n + z h'; r, z = s(a), n = tanh(ax + r ah), in the order r, z, n
/// a = ax + ah, where ax = W x + b of the input, ah = W h' + b of the state. Source: Elman 1990;
/// Gers et al. 2000; Cho et al. 2014, with r where PyTorch and cuDNN have it.
enum class RnnCell { tanh, lstm, gru };

/// A layer over sequences, the longest first, whose positions lie one after another: x is (sum of
/// rows, I), y (sum of rows, directions H).
struct RnnSpec {
  RnnCell cell = RnnCell::lstm;
  int64_t inputs = 0, hidden = 0;
  int64_t directions = 1;  // 2: another reads from each sequence's end; y has it behind the first
  std::vector<int64_t> rows;  // by position: sequences that reach it, never more than before

  int64_t gates() const { return cell == RnnCell::lstm ? 4 : cell == RnnCell::gru ? 3 : 1; }
  int64_t sequences() const { return rows.empty() ? 0 : rows.front(); }
  int64_t total_rows() const { return std::accumulate(rows.begin(), rows.end(), int64_t{0}); }
  bool operator==(const RnnSpec&) const = default;
};

/// Throws Error, in the name of `op`, unless `rows` are those of sequences, the longest first.
inline void check_rows(const char* op, const std::vector<int64_t>& rows) {
  WISP_CHECK(!rows.empty() && rows.back() > 0, op, ": no sequences");
  for (size_t t = 1; t < rows.size(); ++t) {
    WISP_CHECK(rows[t] <= rows[t - 1], op, ": ", rows[t], " sequences reach position ", t, " and ",
               rows[t - 1], " the one before, expected the longest first");
  }
}

/// (directions, sequences, H) each, of the activations' type. Within a call c is of the wide type.
struct RnnState {
  Tensor h;
  Tensor c;  // lstm only
};

/// Of one direction: (gates H, I), (gates H, H) and two biases (gates H), as PyTorch and cuDNN have
/// them. The matrices may have the activations' type, where the backend reads such.
struct RnnWeights {
  Tensor input, recurrent, input_bias, recurrent_bias;
};
/// Where their gradients go; `into` is undefined where none is wanted.
struct RnnGradients {
  GradSlot input, recurrent, input_bias, recurrent_bias;
};

}  // namespace wisp
