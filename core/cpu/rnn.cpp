#include "core/cpu/rnn.h"

#include <algorithm>

#include "core/backend.h"
#include "core/cpu/narrow.h"
#include "core/cpu/packed_product.h"
#include "core/cpu/rnn_cells.h"
#include "core/cpu/rnn_space.h"

namespace wisp {
namespace {

template <class T>
RnnKept<T> at_row(const RnnSpec& s, const RnnKept<T>& kept, int64_t row, int64_t unit) {
  if (!kept.gates) return {};
  const int64_t state = row * s.hidden + unit;
  return {kept.gates + s.gates() * row * s.hidden + unit, kept.c ? kept.c + state : nullptr,
          kept.ah ? kept.ah + state : nullptr};
}

/// The rows of a position; 0 after the last one.
int64_t rows_of(const std::vector<RnnPosition>& order, size_t position) {
  return position < order.size() ? order[position].rows : 0;
}

/// Packs a cell's results for a tile's rows and units into the left factor of the next position,
/// from depth `depth` on. `fill` adds the zeros after the last unit.
template <class T>
void hand_on(const float* values, int64_t stride, int64_t first, int64_t last, int64_t depth,
             int64_t units, bool fill, const RowBlocks<T>& blocks, int64_t packed, T* left) {
  for (int64_t b = 0; b < blocks.count; ++b) {
    const int64_t begin = blocks.begin(b), size = blocks.size(b);
    T* const block = left + begin * packed;
    const int64_t from = std::max(first, begin), to = std::min(last, begin + size);
    for (int64_t u = 0; u < units; ++u)
      for (int64_t r = from; r < to; ++r)
        store(block + blocks.place(size, r - begin, depth + u), values[(r - first) * stride + u]);
    if (!fill) continue;
    for (int64_t p = depth + units; p < packed; ++p)
      for (int64_t r = from; r < to; ++r) store(block + blocks.place(size, r - begin, p), 0.0f);
  }
}

template <class To, class From>
void copy_numbers(const From* from, int64_t numel, To* to) {
  for (int64_t i = 0; i < numel; ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
}

/// Copies one direction of a state (directions, sequences, H). An undefined state is zero.
template <class T, class To>
void copy_state(const RnnSpec& s, const Tensor& state, int64_t direction, To* to) {
  const int64_t numel = s.sequences() * s.hidden;
  if (!state.defined()) return std::fill(to, to + numel, To(0.0f));
  copy_numbers(state.data<T>() + direction * numel, numel, to);
}

bool threads_pay(const RnnSpec& s) {
  return s.sequences() * s.gates() * s.hidden * s.hidden >= 1 << 17;
}

int64_t tile_units(const RnnSpec& s, int64_t strip) {
  return std::min(kStripColumns, s.hidden - strip * kStripColumns);
}

template <class T>
void read_positions(const RnnSpec& s, int64_t direction, const RnnWeights& w, const float* ax,
                    const RnnKept<T>& kept, T* y, const RnnForwardSpace<T>& space) {
  const int64_t H = s.hidden, gates = s.gates(), depth = packed_depth<T>(H);
  const int64_t y_stride = s.directions * H;
  const std::vector<RnnPosition> order = positions_of(s, direction);
  const RowBlocks<T> start(order.front().rows);
  hand_on<T>(space.h, H, 0, start.rows, 0, H, true, start, depth, space.left[0]);
  const Strided<float> recurrent{w.recurrent.data<float>(), 1, H};
#pragma omp parallel if (threads_pay(s))
  {
    BlockProduct<T> product;
#pragma omp for collapse(2) schedule(static)
    for (int64_t strip = 0; strip < strips_of(H); ++strip)
      for (int64_t g = 0; g < gates; ++g)
        pack_strip(recurrent.from(0, g * H + strip * kStripColumns), H, tile_units(s, strip),
                   space.scratch + (strip * gates + g) * kStripColumns * depth);
    for (size_t i = 0; i < order.size(); ++i) {
      const RnnPosition& at = order[i];
      const RowBlocks<T> blocks(at.rows), next(rows_of(order, i + 1));
      const T* left = space.left[i % 2];
#pragma omp for collapse(2) schedule(static)
      for (int64_t strip = 0; strip < strips_of(H); ++strip) {
        for (int64_t b = 0; b < blocks.count; ++b) {
          const int64_t first = blocks.begin(b), rows = blocks.size(b);
          const int64_t unit = strip * kStripColumns, units = tile_units(s, strip);
          RnnSums ah;
          for (int64_t g = 0; g < gates; ++g)
            product(rows, depth, left + first * depth,
                    space.scratch + (strip * gates + g) * kStripColumns * depth, ah.value[g][0],
                    kStripColumns, false);
          const int64_t row = at.first + first;
          rnn_forward_tile<T>(
              {s.cell, H, rows, units, ax + row * gates * H + unit,
               w.input_bias.data<float>() + unit, w.recurrent_bias.data<float>() + unit,
               space.h + first * H + unit, space.c + first * H + unit, y + row * y_stride + unit,
               y_stride, at_row(s, kept, row, unit)},
              ah);
          // sequences that start after the last block enter with their initial state
          const int64_t end = b + 1 < blocks.count ? first + rows : std::max(at.rows, next.rows);
          hand_on<T>(space.h + first * H + unit, H, first, std::min(end, next.rows), unit, units,
                     unit + units == H, next, depth, space.left[(i + 1) % 2]);
        }
      }
    }
  }
}

template <class T>
void read_back(const RnnSpec& s, int64_t direction, const RnnWeights& w, const RnnKept<T>& kept,
               const T* y, const T* dy, const RnnBackwardSpace<T>& space) {
  const int64_t H = s.hidden, gates = s.gates(), depth = packed_depth<T>(gates * H);
  const int64_t y_stride = s.directions * H;
  const std::vector<RnnPosition> order = positions_of(s, direction);
  std::fill(space.carried, space.carried + s.sequences() * H, 0.0f);
  const Strided<float> recurrent{w.recurrent.data<float>(), H, 1};
#pragma omp parallel if (threads_pay(s))
  {
    BlockProduct<T> product;
#pragma omp for schedule(static)
    for (int64_t strip = 0; strip < strips_of(H); ++strip)
      pack_strip(recurrent.from(0, strip * kStripColumns), gates * H, tile_units(s, strip),
                 space.scratch + strip * kStripColumns * depth);
    for (size_t i = order.size(); i-- > 0;) {
      const RnnPosition& at = order[i];
      // a sequence that ends here has no gradient from the next position
      const RowBlocks<T> blocks(std::min(at.rows, rows_of(order, i + 1)));
      const RowBlocks<T> others(at.rows - blocks.rows), next(at.earlier_rows);
      const T* left = space.left[i % 2];
#pragma omp for collapse(2) schedule(static)
      for (int64_t strip = 0; strip < strips_of(H); ++strip) {
        for (int64_t b = 0; b < blocks.count + others.count; ++b) {
          const bool inner = b < blocks.count;
          const int64_t first =
              inner ? blocks.begin(b) : blocks.rows + others.begin(b - blocks.count);
          const int64_t rows = inner ? blocks.size(b) : others.size(b - blocks.count);
          const int64_t unit = strip * kStripColumns, units = tile_units(s, strip);
          RnnSums sums;
          if (inner) {
            product(rows, depth, left + first * depth,
                    space.scratch + strip * kStripColumns * depth, sums.value[0][0], kStripColumns,
                    false);
          } else {
            std::fill_n(sums.value[0][0], rows * kStripColumns, 0.0f);
          }
          const int64_t row = at.first + first, state = first * H + unit;
          const int64_t before = std::clamp<int64_t>(at.earlier_rows - first, 0, rows);
          const int64_t row_before = at.earlier + first;
          const RnnEarlier<float> c_before{kept.c + row_before * H + unit, H, before,
                                           space.c_before + state, H};
          const RnnEarlier<T> h_before{y + row_before * y_stride + unit, y_stride, before,
                                       space.h_before + state, H};
          rnn_backward_tile<T>(
              {s.cell, H, rows, units, dy + row * y_stride + unit, y_stride, c_before, h_before,
               at_row(s, kept, row, unit), space.carried + state},
              sums);
          for (int64_t g = 0; g < gates; ++g)
            hand_on<T>(sums.value[g][0], kStripColumns, first, std::min(first + rows, next.rows),
                       g * H + unit, units, g + 1 == gates && unit + units == H, next, depth,
                       space.left[(i + 1) % 2]);
        }
      }
    }
  }
}

/// Gathers the h before each row, (rows, H).
template <class T>
void gather_before(const RnnSpec& s, int64_t direction, const T* y, const Tensor& start, T* into) {
  const int64_t H = s.hidden, y_stride = s.directions * H;
  const T* state = start.defined() ? start.data<T>() + direction * s.sequences() * H : nullptr;
  for (const RnnPosition& at : positions_of(s, direction)) {
    for (int64_t r = 0; r < at.rows; ++r) {
      T* row = into + (at.first + r) * H;
      if (r < at.earlier_rows) {
        std::copy_n(y + (at.earlier + r) * y_stride, H, row);
      } else if (state) {
        std::copy_n(state + r * H, H, row);
      } else {
        std::fill_n(row, H, T(0.0f));
      }
    }
  }
}

template <class T>
int64_t kept_bytes(const RnnSpec& s) {
  RnnPieces pieces{nullptr};
  for (int64_t d = 0; d < s.directions; ++d) take_kept<T>(s, pieces);
  return pieces.bytes;
}

/// A pass's pieces of the workspace.
template <class Space>
Space space_in(Workspace& workspace, const RnnSpec& s) {
  return Space(s, workspace.of(Space(s, nullptr).pieces.bytes));
}

bool is_ours(DType activations) {
  return activations != DType::f64 && missing_for(activations).empty();
}

}  // namespace

int64_t CpuRecurrentLayers::rnn_saved_bytes(const RnnSpec& spec, DType activations) const {
  if (!is_ours(activations)) return reference_.rnn_saved_bytes(spec, activations);
  return activations == DType::bf16 ? kept_bytes<BFloat16>(spec) : kept_bytes<float>(spec);
}

void CpuRecurrentLayers::rnn(const Stream& stream, const RnnSpec& spec, const Tensor& x,
                             std::span<const RnnWeights> weights, const RnnState& before, Tensor& y,
                             RnnState& after, Tensor& saved) {
  if (!is_ours(x.dtype())) return reference_.rnn(stream, spec, x, weights, before, y, after, saved);
  const std::vector layers(weights.begin(), weights.end());
  submit_narrow(stream, x, [=, this](auto zero) {
    using T = decltype(zero);
    const auto space = space_in<RnnForwardSpace<T>>(workspace_, spec);
    const int64_t gates = spec.gates() * spec.hidden, state = spec.sequences() * spec.hidden;
    for (int64_t d = 0; d < spec.directions; ++d) {
      const RnnWeights& w = layers[static_cast<size_t>(d)];
      const RnnKept<T> kept = saved.defined() ? kept_of<T>(spec, saved, d) : RnnKept<T>{};
      float* ax = space.ax;
      if constexpr (std::is_same_v<T, float>) ax = saved.defined() ? kept.gates : ax;
      multiply(spec.total_rows(), gates, spec.inputs, Strided<T>{x.data<T>(), spec.inputs, 1},
               Strided<float>{w.input.data<float>(), 1, spec.inputs}, ax, gates, false,
               space.scratch);
      copy_state<T>(spec, before.h, d, space.h);
      copy_state<T>(spec, before.c, d, space.c);
      read_positions(spec, d, w, ax, kept, y.data<T>() + d * spec.hidden, space);
      if (after.h.defined()) copy_numbers(space.h, state, after.h.data<T>() + d * state);
      if (after.c.defined()) copy_numbers(space.c, state, after.c.data<T>() + d * state);
    }
  });
}

void CpuRecurrentLayers::rnn_dx(const Stream& stream, const RnnSpec& spec, const Tensor& y,
                                const Tensor& dy, std::span<const RnnWeights> weights,
                                const RnnState& before, Tensor& saved, const GradSlot& dx) {
  if (!is_ours(y.dtype()))
    return reference_.rnn_dx(stream, spec, y, dy, weights, before, saved, dx);
  const std::vector layers(weights.begin(), weights.end());
  submit_narrow(stream, y, [=, this](auto zero) {
    using T = decltype(zero);
    const auto space = space_in<RnnBackwardSpace<T>>(workspace_, spec);
    const int64_t gates = spec.gates() * spec.hidden;
    for (int64_t d = 0; d < spec.directions; ++d) {
      const RnnWeights& w = layers[static_cast<size_t>(d)];
      const RnnKept<T> kept = kept_of<T>(spec, saved, d);
      copy_state<T>(spec, before.c, d, space.c_before);
      copy_state<T>(spec, before.h, d, space.h_before);
      read_back(spec, d, w, kept, y.data<T>() + d * spec.hidden, dy.data<T>() + d * spec.hidden,
                space);
      if (!dx.into.defined()) continue;
      bool add = d > 0;
      float* into = space.dx;
      if constexpr (std::is_same_v<T, float>) {
        add = add || dx.accumulate;
        into = dx.into.data<float>();
      }
      multiply(spec.total_rows(), spec.inputs, gates, Strided<T>{kept.gates, gates, 1},
               Strided<float>{w.input.data<float>(), spec.inputs, 1}, into, spec.inputs, add,
               space.scratch);
    }
    if constexpr (!std::is_same_v<T, float>) {
      if (!dx.into.defined()) return;
      T* into = dx.into.data<T>();
      for (int64_t i = 0; i < dx.into.numel(); ++i)
        store(into + i, dx.accumulate ? wide(into[i]) + space.dx[i] : space.dx[i]);
    }
  });
}

void CpuRecurrentLayers::rnn_dw(const Stream& stream, const RnnSpec& spec, const Tensor& x,
                                const Tensor& y, const RnnState& before, const Tensor& saved,
                                std::span<const RnnGradients> gradients) {
  if (!is_ours(x.dtype())) return reference_.rnn_dw(stream, spec, x, y, before, saved, gradients);
  const std::vector slots(gradients.begin(), gradients.end());
  submit_narrow(stream, x, [=, this](auto zero) {
    using T = decltype(zero);
    const auto space = space_in<RnnWeightSpace<T>>(workspace_, spec);
    const int64_t H = spec.hidden, gates = spec.gates() * H, rows = spec.total_rows();
    // columns in which the gradients of ah and ax are equal
    const int64_t common = spec.cell == RnnCell::gru ? 2 * H : gates;
    for (int64_t d = 0; d < spec.directions; ++d) {
      const RnnGradients& into = slots[static_cast<size_t>(d)];
      const RnnKept<T> kept = kept_of<T>(spec, saved, d);
      const Strided<T> all{kept.gates, 1, gates};  // transposed
      if (into.input.into.defined())
        multiply(gates, spec.inputs, rows, all, Strided<T>{x.data<T>(), spec.inputs, 1},
                 into.input.into.data<float>(), spec.inputs, into.input.accumulate, space.scratch);
      if (into.recurrent.into.defined()) {
        gather_before(spec, d, y.data<T>() + d * H, before.h, space.h_before);
        const Strided<T> h{space.h_before, H, 1};
        float* dw = into.recurrent.into.data<float>();
        multiply(common, H, rows, all, h, dw, H, into.recurrent.accumulate, space.scratch);
        if (common < gates)
          multiply(H, H, rows, Strided<T>{kept.ah, 1, H}, h, dw + common * H, H,
                   into.recurrent.accumulate, space.scratch);
      }
      if (into.input_bias.into.defined())
        sum_rows(kept.gates, rows, gates, gates, into.input_bias.accumulate,
                 into.input_bias.into.data<float>());
      if (into.recurrent_bias.into.defined()) {
        float* db = into.recurrent_bias.into.data<float>();
        sum_rows(kept.gates, rows, common, gates, into.recurrent_bias.accumulate, db);
        if (common < gates)
          sum_rows(kept.ah, rows, H, H, into.recurrent_bias.accumulate, db + common);
      }
    }
  });
}

}  // namespace wisp
