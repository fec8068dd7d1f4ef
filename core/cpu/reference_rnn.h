// Recurrent layers of the reference backend: plain loops over the cells' equations (core/rnn.h),
// position by position. Any thread may call.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cpu/reference_operands.h"
#include "core/rnn.h"

namespace wisp {

/// The tensors that the forward pass of one direction keeps, by row. rnn_dx() replaces them by
/// gradients.
template <class T>
struct ReferenceRnnKept {
  T* gates;  // (rows, gates H) after their functions; then gradients of ax
  T* more;   // (rows, H): lstm c; gru ah of n, then its gradient

  static int64_t numel(const RnnSpec& s) {
    const int64_t more = s.cell == RnnCell::tanh ? 0 : s.hidden;
    return s.total_rows() * (s.gates() * s.hidden + more);
  }
  static ReferenceRnnKept of(const RnnSpec& s, T* all, int64_t direction) {
    T* gates = all + direction * numel(s);
    return {gates, gates + s.total_rows() * s.gates() * s.hidden};
  }
};

/// One direction of a layer: its positions in reading order, and the state before each.
template <class T>
struct RnnWalk {
  RnnWalk(const RnnSpec& spec, int64_t which_direction)
      : s(spec), direction(which_direction), positions(positions_of(spec, which_direction)) {}

  /// Element `unit` of a sequence's state before a position. It comes from `values` (rows, width)
  /// at `column`, or from `start` (directions, sequences, H); a null `start` is zero.
  T state(const T* values, int64_t width, int64_t column, const T* start, const RnnPosition& at,
          int64_t sequence, int64_t unit) const {
    if (sequence < at.earlier_rows) return values[(at.earlier + sequence) * width + column + unit];
    return start ? start[(direction * s.sequences() + sequence) * s.hidden + unit] : T(0);
  }
  T h(const T* y, const T* start, const RnnPosition& at, int64_t sequence, int64_t unit) const {
    return state(y, s.directions * s.hidden, direction * s.hidden, start, at, sequence, unit);
  }
  T c(const T* kept, const T* start, const RnnPosition& at, int64_t sequence, int64_t unit) const {
    return state(kept, s.hidden, 0, start, at, sequence, unit);
  }

  const RnnSpec& s;
  const int64_t direction;
  const std::vector<RnnPosition> positions;
};

template <class T>
T sigmoid_of(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

/// Weights and biases of one direction for loops over T.
template <class T>
struct RnnFactors {
  RnnFactors(const RnnWeights& w, const Tensor& like)
      : input(w.input, like),
        recurrent(w.recurrent, like),
        input_bias(w.input_bias),
        recurrent_bias(w.recurrent_bias) {}
  const ReferenceSource<T> input, recurrent, input_bias, recurrent_bias;
};

/// The forward pass of one direction. h is rounded to `h_type` before the next position reads it.
template <class T>
void rnn_forward(const RnnSpec& s, int64_t direction, const T* x, const RnnFactors<T>& w,
                 const T* h_before, const T* c_before, DType h_type,
                 const ReferenceRnnKept<T>& kept, T* y) {
  const RnnWalk<T> walk(s, direction);
  const int64_t H = s.hidden, G = s.gates();
  for (const RnnPosition& at : walk.positions) {
#pragma omp parallel for schedule(static) if (at.rows * G * H * (H + s.inputs) >= 1 << 17)
    for (int64_t unit = 0; unit < H; ++unit) {
      for (int64_t n = 0; n < at.rows; ++n) {
        const int64_t row = at.first + n;
        T ax[4], ah[4];
        for (int64_t g = 0; g < G; ++g) {
          const int64_t gate = g * H + unit;
          ax[g] = w.input_bias.data()[gate];
          for (int64_t i = 0; i < s.inputs; ++i)
            ax[g] += w.input.data()[gate * s.inputs + i] * x[row * s.inputs + i];
          ah[g] = w.recurrent_bias.data()[gate];
          for (int64_t i = 0; i < H; ++i)
            ah[g] += w.recurrent.data()[gate * H + i] * walk.h(y, h_before, at, n, i);
        }
        T* gates = kept.gates + row * G * H + unit;
        T h = 0;
        if (s.cell == RnnCell::tanh) {
          h = gates[0] = std::tanh(ax[0] + ah[0]);
        } else if (s.cell == RnnCell::lstm) {
          const T i = gates[0] = sigmoid_of(ax[0] + ah[0]);
          const T f = gates[H] = sigmoid_of(ax[1] + ah[1]);
          const T g = gates[2 * H] = std::tanh(ax[2] + ah[2]);
          const T o = gates[3 * H] = sigmoid_of(ax[3] + ah[3]);
          const T c = f * walk.c(kept.more, c_before, at, n, unit) + i * g;
          kept.more[row * H + unit] = c;
          h = o * std::tanh(c);
        } else {
          const T r = gates[0] = sigmoid_of(ax[0] + ah[0]);
          const T z = gates[H] = sigmoid_of(ax[1] + ah[1]);
          kept.more[row * H + unit] = ah[2];
          const T candidate = gates[2 * H] = std::tanh(ax[2] + r * ah[2]);
          h = (T(1) - z) * candidate + z * walk.h(y, h_before, at, n, unit);
        }
        if (h_type == DType::bf16) h = static_cast<T>(wide(BFloat16(static_cast<float>(h))));
        y[row * s.directions * H + direction * H + unit] = h;
      }
    }
  }
}

/// Copies the last state of each sequence to `after`, from y (rows, directions H) or the kept c
/// (rows, H).
template <class T>
void rnn_after(const RnnSpec& s, int64_t direction, const T* values, int64_t width, int64_t column,
               T* after) {
  const std::vector<RnnPosition> positions = positions_of(s, direction);
  for (int64_t n = 0; n < s.sequences(); ++n) {
    const auto last = std::find_if(positions.rbegin(), positions.rend(),
                                   [n](const RnnPosition& at) { return n < at.rows; });
    const T* left = values + (last->first + n) * width + column;
    std::copy_n(left, s.hidden, after + (direction * s.sequences() + n) * s.hidden);
  }
}

/// The gradient of ah. It equals that of ax, except for a GRU's n.
template <class T>
T rnn_recurrent_gradient(const RnnSpec& s, const ReferenceRnnKept<T>& kept, int64_t row,
                         int64_t gate) {
  const bool own = s.cell == RnnCell::gru && gate >= 2 * s.hidden;
  return own ? kept.more[row * s.hidden + gate - 2 * s.hidden]
             : kept.gates[row * s.gates() * s.hidden + gate];
}

/// Writes to `kept` the gradients of ax, and of a GRU's ah of n.
template <class T>
void rnn_gate_gradients(const RnnSpec& s, int64_t direction, const T* y, const T* dy,
                        const RnnFactors<T>& w, const T* h_before, const T* c_before,
                        const ReferenceRnnKept<T>& kept) {
  const RnnWalk<T> walk(s, direction);
  const int64_t H = s.hidden, G = s.gates();
  const auto state = static_cast<size_t>(s.sequences() * H);
  std::vector<T> dh_next(state), dc_next(state), direct(state);
  for (size_t t = walk.positions.size(); t-- > 0;) {
    const RnnPosition& at = walk.positions[t];
    for (int64_t n = 0; n < at.rows; ++n) {
      const int64_t row = at.first + n;
      for (int64_t unit = 0; unit < H; ++unit) {
        const auto i = static_cast<size_t>(n * H + unit);
        const T dh = dy[row * s.directions * H + direction * H + unit] + dh_next[i];
        T* gates = kept.gates + row * G * H + unit;
        direct[i] = 0;
        if (s.cell == RnnCell::tanh) {
          gates[0] = dh * (T(1) - gates[0] * gates[0]);
        } else if (s.cell == RnnCell::lstm) {
          const T in = gates[0], f = gates[H], g = gates[2 * H], o = gates[3 * H];
          const T tanh_c = std::tanh(kept.more[row * H + unit]);
          const T dc = dh * o * (T(1) - tanh_c * tanh_c) + dc_next[i];
          gates[0] = dc * g * in * (T(1) - in);
          gates[H] = dc * walk.c(kept.more, c_before, at, n, unit) * f * (T(1) - f);
          gates[2 * H] = dc * in * (T(1) - g * g);
          gates[3 * H] = dh * tanh_c * o * (T(1) - o);
          dc_next[i] = dc * f;
        } else {
          const T r = gates[0], z = gates[H], candidate = gates[2 * H];
          T& ah = kept.more[row * H + unit];
          const T da = dh * (T(1) - z) * (T(1) - candidate * candidate);
          gates[0] = da * ah * r * (T(1) - r);
          gates[H] = dh * (walk.h(y, h_before, at, n, unit) - candidate) * z * (T(1) - z);
          gates[2 * H] = da;
          ah = da * r;
          direct[i] = dh * z;
        }
      }
    }
#pragma omp parallel for schedule(static) if (at.rows * G * H * H >= 1 << 17)
    for (int64_t unit = 0; unit < H; ++unit) {
      for (int64_t n = 0; n < at.rows; ++n) {
        const int64_t row = at.first + n;
        T sum = direct[static_cast<size_t>(n * H + unit)];
        for (int64_t gate = 0; gate < G * H; ++gate)
          sum += rnn_recurrent_gradient(s, kept, row, gate) * w.recurrent.data()[gate * H + unit];
        dh_next[static_cast<size_t>(n * H + unit)] = sum;
      }
    }
  }
}

/// Computes dx of one direction, (rows, I). `accumulate` adds to it.
template <class T>
void rnn_input_gradient(const RnnSpec& s, const RnnFactors<T>& w, const ReferenceRnnKept<T>& kept,
                        bool accumulate, T* dx) {
  const int64_t gates = s.gates() * s.hidden;
#pragma omp parallel for schedule(static) if (s.total_rows() * gates * s.inputs >= 1 << 17)
  for (int64_t row = 0; row < s.total_rows(); ++row) {
    for (int64_t i = 0; i < s.inputs; ++i) {
      T sum = accumulate ? dx[row * s.inputs + i] : T(0);
      for (int64_t gate = 0; gate < gates; ++gate)
        sum += kept.gates[row * gates + gate] * w.input.data()[gate * s.inputs + i];
      dx[row * s.inputs + i] = sum;
    }
  }
}

template <class T>
struct RnnWeightTargets {
  const Target<T> input, recurrent, input_bias, recurrent_bias;
};

template <class T>
void rnn_weight_gradients(const RnnSpec& s, int64_t direction, const T* x, const T* y,
                          const T* h_before, const ReferenceRnnKept<T>& kept,
                          const RnnWeightTargets<T>& d) {
  const RnnWalk<T> walk(s, direction);
  std::vector<RnnPosition> in_order = walk.positions;  // positions in the order of their rows
  if (direction == 1) std::reverse(in_order.begin(), in_order.end());
  const int64_t H = s.hidden, gates = s.gates() * s.hidden;
#pragma omp parallel for schedule(static) if (s.total_rows() * gates * (H + s.inputs) >= 1 << 17)
  for (int64_t gate = 0; gate < gates; ++gate) {
    std::vector<T> input(static_cast<size_t>(s.inputs)), recurrent(static_cast<size_t>(H));
    T input_bias = 0, recurrent_bias = 0;
    for (const RnnPosition& at : in_order) {
      for (int64_t n = 0; n < at.rows; ++n) {
        const int64_t row = at.first + n;
        const T dax = kept.gates[row * gates + gate];
        const T dah = rnn_recurrent_gradient(s, kept, row, gate);
        input_bias += dax;
        recurrent_bias += dah;
        for (int64_t i = 0; i < s.inputs; ++i)
          input[static_cast<size_t>(i)] += dax * x[row * s.inputs + i];
        for (int64_t i = 0; i < H; ++i)
          recurrent[static_cast<size_t>(i)] += dah * walk.h(y, h_before, at, n, i);
      }
    }
    d.input_bias.put(gate, input_bias);
    d.recurrent_bias.put(gate, recurrent_bias);
    for (int64_t i = 0; i < s.inputs; ++i)
      d.input.put(gate * s.inputs + i, input[static_cast<size_t>(i)]);
    for (int64_t i = 0; i < H; ++i)
      d.recurrent.put(gate * H + i, recurrent[static_cast<size_t>(i)]);
  }
}

}  // namespace wisp
