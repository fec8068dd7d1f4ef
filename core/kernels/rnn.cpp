// Recurrent layers. The products with the input weights run over all positions at once. The
// products with the recurrent weights run position by position, each followed by a kernel for the
// cell. Tensors kept for the backward pass have the activations' type, except an LSTM's c and a
// GRU's ah of n, which are wide. Source: core/rnn.h.
#include "core/kernels/rnn.h"

#include "core/copy.h"
#include "core/elementary.h"
#include "core/loops/parallel_rows.h"
#include "core/ops/bias.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// The tensors that the forward pass of one direction keeps, by row. The backward pass replaces the
/// gates by the gradients of ax. A GRU has other gradients of ah, in a tensor of their own.
struct Kept {
  Tensor gates;  // (rows, gates H), after their activation functions
  Tensor more;   // (rows, H), wide: lstm c; gru ah of n
  Tensor d_ah;   // (rows, 3 H), gru

  static int64_t bytes(const RnnSpec& s, DType type) {
    const int64_t rows = s.total_rows(), gates = whole(rows * s.gates() * s.hidden * size_of(type));
    const int64_t more =
        s.cell == RnnCell::tanh ? 0 : whole(rows * s.hidden * size_of(wide_of(type)));
    return gates + more + (s.cell == RnnCell::gru ? gates : 0);
  }
  /// Returns undefined tensors if `saved` is undefined.
  static Kept of(const RnnSpec& s, DType type, const Tensor& saved, int64_t direction) {
    Kept kept;
    if (!saved.defined()) return kept;
    int64_t at = direction * bytes(s, type);
    const auto take = [&](Shape shape, DType dtype) {
      const Tensor memory = saved.slice(at, {shape.numel() * size_of(dtype)});
      at += whole(memory.bytes());
      return memory.reinterpreted(shape, dtype);
    };
    const int64_t rows = s.total_rows(), gates = s.gates() * s.hidden;
    kept.gates = take({rows, gates}, type);
    if (s.cell != RnnCell::tanh) kept.more = take({rows, s.hidden}, wide_of(type));
    if (s.cell == RnnCell::gru) kept.d_ah = take({rows, gates}, type);
    return kept;
  }

 private:
  static int64_t whole(int64_t bytes) { return (bytes + 63) / 64 * 64; }
};

/// Copies the initial state (sequences, H) from `before`; zero if it is null.
template <class To, class From>
struct BeginState {
  const From* before;
  To* state;
  WISP_HD void operator()(int64_t i) const {
    store(state + i, before ? static_cast<Wide<To>>(wide(before[i])) : Wide<To>(0));
  }
};

/// The forward pass of a cell: an index per row and unit of a position.
template <class T>
struct CellForward {
  using W = Wide<T>;
  RnnCell cell;
  int64_t hidden, gate_columns;
  int64_t first;  // the position's first row
  const W* ax;    // (rows of all positions, gates H), without bias
  const W* ah;    // (rows of this position, gates H), without bias
  const W* input_bias;
  const W* recurrent_bias;
  T* h;      // (sequences, H): the state, before and after
  W* c;      // (sequences, H): the cell state, lstm
  T* gates;  // null if there is no backward pass
  W* more;
  T* y;  // this direction's columns
  int64_t y_columns;

  WISP_HD void operator()(int64_t i) const {
    const int64_t n = i / hidden, unit = i % hidden, row = first + n;
    const auto of_input = [&](int64_t gate) {
      const int64_t column = gate * hidden + unit;
      return ax[row * gate_columns + column] + input_bias[column];
    };
    const auto of_state = [&](int64_t gate) {
      const int64_t column = gate * hidden + unit;
      return ah[n * gate_columns + column] + recurrent_bias[column];
    };
    const auto keep = [&](int64_t gate, W value) {
      if (gates) store(gates + row * gate_columns + gate * hidden + unit, value);
      return value;
    };
    W result;
    if (cell == RnnCell::tanh) {
      result = keep(0, tangent(of_input(0) + of_state(0)));
    } else if (cell == RnnCell::lstm) {
      const W input = keep(0, sigmoid(of_input(0) + of_state(0)));
      const W forget = keep(1, sigmoid(of_input(1) + of_state(1)));
      const W candidate = keep(2, tangent(of_input(2) + of_state(2)));
      const W output = keep(3, sigmoid(of_input(3) + of_state(3)));
      c[i] = forget * c[i] + input * candidate;
      if (more) more[row * hidden + unit] = c[i];
      result = output * tangent(c[i]);
    } else {
      const W reset = keep(0, sigmoid(of_input(0) + of_state(0)));
      const W update = keep(1, sigmoid(of_input(1) + of_state(1)));
      const W state = of_state(2);
      const W candidate = keep(2, tangent(of_input(2) + reset * state));
      if (more) more[row * hidden + unit] = state;
      result = (W(1) - update) * candidate + update * wide(h[i]);
    }
    store(h + i, result);
    y[row * y_columns + unit] = h[i];
  }
};

/// The backward pass of a cell: an index per row and unit of a position. Replaces the gates by the
/// gradients of ax.
template <class T>
struct CellBackward {
  using W = Wide<T>;
  RnnCell cell;
  int64_t hidden, gate_columns;
  RnnPosition position;
  const T* y;  // this direction's columns, like dy
  const T* dy;
  int64_t y_columns;
  const T* h_before;  // (sequences, H), or null: zero
  const T* c_before;
  T* gates;
  W* more;
  T* d_ah;
  W* dh;  // (sequences, H): state's gradient; gru: then its part past the product
  W* dc;

  WISP_HD void operator()(int64_t i) const {
    const int64_t n = i / hidden, unit = i % hidden, row = position.first + n;
    const bool earlier = n < position.earlier_rows;
    const int64_t earlier_row = position.earlier + n;
    const auto gate = [&](int64_t at) { return gates + row * gate_columns + at * hidden + unit; };
    const W d = wide(dy[row * y_columns + unit]) + dh[i];
    if (cell == RnnCell::tanh) {
      const W h = wide(*gate(0));
      store(gate(0), d * (W(1) - h * h));
    } else if (cell == RnnCell::lstm) {
      const W input = wide(*gate(0)), forget = wide(*gate(1));
      const W candidate = wide(*gate(2)), output = wide(*gate(3));
      const W c = tangent(more[row * hidden + unit]);
      const W past = earlier    ? more[earlier_row * hidden + unit]
                     : c_before ? wide(c_before[i])
                                : W(0);
      const W d_cell = d * output * (W(1) - c * c) + dc[i];
      store(gate(0), d_cell * candidate * input * (W(1) - input));
      store(gate(1), d_cell * past * forget * (W(1) - forget));
      store(gate(2), d_cell * input * (W(1) - candidate * candidate));
      store(gate(3), d * c * output * (W(1) - output));
      dc[i] = d_cell * forget;
    } else {
      const W reset = wide(*gate(0)), update = wide(*gate(1)), candidate = wide(*gate(2));
      const W state = more[row * hidden + unit];
      const W past = earlier    ? wide(y[earlier_row * y_columns + unit])
                     : h_before ? wide(h_before[i])
                                : W(0);
      const W d_candidate = d * (W(1) - update) * (W(1) - candidate * candidate);
      store(gate(0), d_candidate * state * reset * (W(1) - reset));
      store(gate(1), d * (past - candidate) * update * (W(1) - update));
      store(gate(2), d_candidate);
      T* const own = d_ah + row * gate_columns + unit;
      own[0] = *gate(0);
      own[hidden] = *gate(1);
      store(own + 2 * hidden, d_candidate * reset);
      dh[i] = d * update;
    }
  }
};

/// The rows of a position for parallel_rows. An item is a row.
struct PositionRow {
  RnnPosition position;
  int64_t first_item = 0;
};

/// Writes the h' that each row reads to `states`, (rows of all positions, H).
template <class T>
struct EarlierStates {
  struct Shared {};
  const T* y;  // this direction's columns
  int64_t y_columns, hidden;
  const T* h_before;  // (sequences, H), or null: zero
  T* states;
  RowTable<PositionRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const PositionRow& row = table.row_of(item);
    const int64_t n = item - row.first_item;
    const T* from = n < row.position.earlier_rows ? y + (row.position.earlier + n) * y_columns
                    : h_before                    ? h_before + n * hidden
                                                  : nullptr;
    T* to = states + (row.position.first + n) * hidden;
    team.each(hidden, [&](int64_t unit) {
      if (from) {
        to[unit] = from[unit];
      } else {
        store(to + unit, Wide<T>(0));
      }
    });
  }
};

/// A direction's part of a state, or null if the state is undefined.
template <class T>
T* state_of(const RnnSpec& s, const Tensor& state, int64_t direction) {
  return state.defined() ? state.data<T>() + direction * s.sequences() * s.hidden : nullptr;
}

}  // namespace

int64_t KernelRecurrentLayers::rnn_saved_bytes(const RnnSpec& spec, DType activations) const {
  return spec.directions * Kept::bytes(spec, activations);
}

void KernelRecurrentLayers::rnn(const Stream& stream, const RnnSpec& spec, const Tensor& x,
                                std::span<const RnnWeights> weights, const RnnState& before,
                                Tensor& y, RnnState& after, Tensor& saved) {
  dispatch_activation(x.dtype(), "rnn", [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    const DType type = x.dtype(), wide_type = wide_of(type);
    const int64_t H = spec.hidden, columns = spec.gates() * H, sequences = spec.sequences();
    const bool lstm = spec.cell == RnnCell::lstm;
    const Tensor ax({spec.total_rows(), columns}, wide_type, pool_, stream.id());
    const Tensor ah({sequences, columns}, wide_type, pool_, stream.id());
    const Tensor c = lstm ? Tensor({sequences, H}, wide_type, pool_, stream.id()) : Tensor();
    for (int64_t d = 0; d < spec.directions; ++d) {
      const RnnWeights& w = weights[static_cast<size_t>(d)];
      const Kept kept = Kept::of(spec, type, saved, d);
      const Tensor h = after.h.slice(d * sequences * H, {sequences, H});
      parallel_for(stream, h.numel(),
                   BeginState<T, T>{state_of<T>(spec, before.h, d), h.data<T>()});
      if (lstm)
        parallel_for(stream, c.numel(),
                     BeginState<W, T>{state_of<T>(spec, before.c, d), c.data<W>()});
      products_.gemm(stream,
                     {.m = spec.total_rows(), .n = columns, .k = spec.inputs, .transpose_b = true},
                     x, w.input, {ax, false});
      const Tensor recurrent = in_type(type, w.recurrent, stream, pool_);  // once for all positions
      for (const RnnPosition& position : positions_of(spec, d)) {
        products_.gemm(stream, {.m = position.rows, .n = columns, .k = H, .transpose_b = true},
                       h.rows(0, position.rows), recurrent, {ah.rows(0, position.rows), false});
        parallel_for(
            stream, position.rows * H,
            CellForward<T>{spec.cell, H, columns, position.first, ax.data<W>(), ah.data<W>(),
                           w.input_bias.data<W>(), w.recurrent_bias.data<W>(), h.data<T>(),
                           c.data<W>(), kept.gates.data<T>(), kept.more.data<W>(),
                           y.data<T>() + d * H, spec.directions * H});
      }
      if (lstm) deposit(stream, c, {after.c.slice(d * c.numel(), c.shape()), false});
    }
  });
}

void KernelRecurrentLayers::rnn_dx(const Stream& stream, const RnnSpec& spec, const Tensor& y,
                                   const Tensor& dy, std::span<const RnnWeights> weights,
                                   const RnnState& before, Tensor& saved, const GradSlot& dx) {
  dispatch_activation(y.dtype(), "rnn_dx", [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    const DType type = y.dtype(), wide_type = wide_of(type);
    const int64_t H = spec.hidden, columns = spec.gates() * H;
    const bool gru = spec.cell == RnnCell::gru;
    const Tensor dh({spec.sequences(), H}, wide_type, pool_, stream.id());
    const Tensor dc =
        spec.cell == RnnCell::lstm ? Tensor(dh.shape(), wide_type, pool_, stream.id()) : Tensor();
    for (int64_t d = 0; d < spec.directions; ++d) {
      const RnnWeights& w = weights[static_cast<size_t>(d)];
      const Kept kept = Kept::of(spec, type, saved, d);
      const Tensor recurrent = in_type(type, w.recurrent, stream, pool_);  // once for all positions
      clear(stream, dh);
      if (dc.defined()) clear(stream, dc);
      const std::vector<RnnPosition> positions = positions_of(spec, d);
      for (size_t i = positions.size(); i-- > 0;) {
        const RnnPosition& position = positions[i];
        parallel_for(stream, position.rows * H,
                     CellBackward<T>{spec.cell, H, columns, position, y.data<T>() + d * H,
                                     dy.data<T>() + d * H, spec.directions * H,
                                     state_of<T>(spec, before.h, d), state_of<T>(spec, before.c, d),
                                     kept.gates.data<T>(), kept.more.data<W>(), kept.d_ah.data<T>(),
                                     dh.data<W>(), dc.data<W>()});
        if (i == 0) break;  // no gradient reaches the initial state
        const Tensor& d_ah = gru ? kept.d_ah : kept.gates;
        products_.gemm(stream, {.m = position.rows, .n = H, .k = columns},
                       d_ah.rows(position.first, position.first + position.rows), recurrent,
                       {dh.rows(0, position.rows), gru});
      }
      if (dx.into.defined())
        products_.gemm(stream, {.m = spec.total_rows(), .n = spec.inputs, .k = columns}, kept.gates,
                       w.input, {dx.into, dx.accumulate || d > 0});
    }
  });
}

void KernelRecurrentLayers::rnn_dw(const Stream& stream, const RnnSpec& spec, const Tensor& x,
                                   const Tensor& y, const RnnState& before, const Tensor& saved,
                                   std::span<const RnnGradients> gradients) {
  dispatch_activation(x.dtype(), "rnn_dw", [&](auto zero) {
    using T = decltype(zero);
    const DType type = x.dtype();
    const int64_t rows = spec.total_rows(), H = spec.hidden, columns = spec.gates() * H;
    const Tensor states({rows, H}, type, pool_, stream.id());
    for (int64_t d = 0; d < spec.directions; ++d) {
      const RnnGradients& into = gradients[static_cast<size_t>(d)];
      const Kept kept = Kept::of(spec, type, saved, d);
      const Tensor& d_ah = spec.cell == RnnCell::gru ? kept.d_ah : kept.gates;
      if (into.input.into.defined())
        products_.gemm(stream, {.m = columns, .n = spec.inputs, .k = rows, .transpose_a = true},
                       kept.gates, x, into.input);
      if (into.recurrent.into.defined()) {
        const EarlierStates<T> earlier{y.data<T>() + d * H, spec.directions * H, H,
                                       state_of<T>(spec, before.h, d), states.data<T>()};
        parallel_rows(stream, earlier, H, [&](const auto& put) {
          for (const RnnPosition& position : positions_of(spec, d)) put({position}, position.rows);
        });
        products_.gemm(stream, {.m = columns, .n = H, .k = rows, .transpose_a = true}, d_ah, states,
                       into.recurrent);
      }
      const GradSlot &of_input = into.input_bias, &of_state = into.recurrent_bias;
      if (of_input.into.defined()) sum_rows(stream, pool_, kept.gates, of_input);
      if (!of_state.into.defined()) continue;
      const bool summed = of_input.into.defined() && !of_input.accumulate;
      if (summed && spec.cell != RnnCell::gru) {
        deposit(stream, of_input.into, of_state);
      } else {
        sum_rows(stream, pool_, d_ah, of_state);
      }
    }
  });
}

}  // namespace wisp
