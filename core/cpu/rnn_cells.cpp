#include "core/cpu/rnn_cells.h"

#include "core/elementary.h"
#include "core/loops/parallel.h"

namespace wisp {
namespace {

// Loops over a tile's units. Arrays overlap only at equal indices, so g++ may vectorise them.

template <class T>
WISP_CLONES void tanh_forward(const RnnForwardTile<T>& tile, const RnnSums& ah) {
  const int64_t units = tile.units;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const float* ax = tile.ax + r * tile.hidden;
    const float* sum = ah.value[0][r];
    float* h = tile.h + r * tile.hidden;
    T* y = tile.y + r * tile.y_stride;
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      store(y + u, tangent((ax[u] + tile.input_bias[u]) + (sum[u] + tile.recurrent_bias[u])));
      h[u] = wide(y[u]);
    }
    if (!tile.kept.gates) continue;
    T* gate = tile.kept.gates + r * tile.hidden;
    for (int64_t u = 0; u < units; ++u) gate[u] = y[u];
  }
}

template <bool kKeep, class T>
WISP_CLONES void lstm_forward(const RnnForwardTile<T>& tile, const RnnSums& ah) {
  const int64_t units = tile.units, H = tile.hidden;
  const float *b = tile.input_bias, *br = tile.recurrent_bias;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const float* ax = tile.ax + r * 4 * H;
    float *h = tile.h + r * H, *c = tile.c + r * H;
    T* y = tile.y + r * tile.y_stride;
    T* gates = kKeep ? tile.kept.gates + r * 4 * H : nullptr;
    float* kept_c = kKeep ? tile.kept.c + r * H : nullptr;
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      const float i = sigmoid((ax[u] + b[u]) + (ah.value[0][r][u] + br[u]));
      const float f = sigmoid((ax[u + H] + b[u + H]) + (ah.value[1][r][u] + br[u + H]));
      const float g = tangent((ax[u + 2 * H] + b[u + 2 * H]) + (ah.value[2][r][u] + br[u + 2 * H]));
      const float o = sigmoid((ax[u + 3 * H] + b[u + 3 * H]) + (ah.value[3][r][u] + br[u + 3 * H]));
      c[u] = f * c[u] + i * g;
      store(y + u, o * tangent(c[u]));
      h[u] = wide(y[u]);
      if (kKeep) {
        store(gates + u, i);
        store(gates + u + H, f);
        store(gates + u + 2 * H, g);
        store(gates + u + 3 * H, o);
        kept_c[u] = c[u];
      }
    }
  }
}

template <bool kKeep, class T>
WISP_CLONES void gru_forward(const RnnForwardTile<T>& tile, const RnnSums& ah) {
  const int64_t units = tile.units, H = tile.hidden;
  const float *b = tile.input_bias, *br = tile.recurrent_bias;
  for (int64_t row = 0; row < tile.rows; ++row) {
    const float* ax = tile.ax + row * 3 * H;
    float* h = tile.h + row * H;
    T* y = tile.y + row * tile.y_stride;
    T* gates = kKeep ? tile.kept.gates + row * 3 * H : nullptr;
    T* kept_ah = kKeep ? tile.kept.ah + row * H : nullptr;
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      const float r = sigmoid((ax[u] + b[u]) + (ah.value[0][row][u] + br[u]));
      const float z = sigmoid((ax[u + H] + b[u + H]) + (ah.value[1][row][u] + br[u + H]));
      const float ah_n = ah.value[2][row][u] + br[u + 2 * H];
      const float n = tangent((ax[u + 2 * H] + b[u + 2 * H]) + r * ah_n);
      store(y + u, (1.0f - z) * n + z * h[u]);
      h[u] = wide(y[u]);
      if (kKeep) {
        store(gates + u, r);
        store(gates + u + H, z);
        store(gates + u + 2 * H, n);
        store(kept_ah + u, ah_n);
      }
    }
  }
}

template <class T>
WISP_CLONES void tanh_backward(const RnnBackwardTile<T>& tile, RnnSums& sums) {
  const int64_t units = tile.units;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const T* dy = tile.dy + r * tile.y_stride;
    T* gate = tile.kept.gates + r * tile.hidden;
    float* sum = sums.value[0][r];
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      const float h = wide(gate[u]);
      sum[u] = (wide(dy[u]) + sum[u]) * (1.0f - h * h);
      store(gate + u, sum[u]);
    }
  }
}

template <class T>
WISP_CLONES void lstm_backward(const RnnBackwardTile<T>& tile, RnnSums& sums) {
  const int64_t units = tile.units, H = tile.hidden;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const T* dy = tile.dy + r * tile.y_stride;
    const float *c = tile.kept.c + r * H, *c_before = tile.c_before.row(r);
    T* gates = tile.kept.gates + r * 4 * H;
    float* dc_next = tile.carried + r * H;
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      const float dh = wide(dy[u]) + sums.value[0][r][u];
      const float i = wide(gates[u]), f = wide(gates[u + H]);
      const float g = wide(gates[u + 2 * H]), o = wide(gates[u + 3 * H]);
      const float tanh_c = tangent(c[u]);
      const float dc = dh * o * (1.0f - tanh_c * tanh_c) + dc_next[u];
      const float di = dc * g * i * (1.0f - i);
      const float df = dc * c_before[u] * f * (1.0f - f);
      const float dg = dc * i * (1.0f - g * g);
      const float d_o = dh * tanh_c * o * (1.0f - o);
      dc_next[u] = dc * f;
      sums.value[0][r][u] = di;
      sums.value[1][r][u] = df;
      sums.value[2][r][u] = dg;
      sums.value[3][r][u] = d_o;
      store(gates + u, di);
      store(gates + u + H, df);
      store(gates + u + 2 * H, dg);
      store(gates + u + 3 * H, d_o);
    }
  }
}

template <class T>
WISP_CLONES void gru_backward(const RnnBackwardTile<T>& tile, RnnSums& sums) {
  const int64_t units = tile.units, H = tile.hidden;
  for (int64_t row = 0; row < tile.rows; ++row) {
    const T* dy = tile.dy + row * tile.y_stride;
    const T* h_before = tile.h_before.row(row);
    T* gates = tile.kept.gates + row * 3 * H;
    T* ah = tile.kept.ah + row * H;
    float* past_n = tile.carried + row * H;
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      const float dh = wide(dy[u]) + (sums.value[0][row][u] + past_n[u]);
      const float r = wide(gates[u]), z = wide(gates[u + H]), n = wide(gates[u + 2 * H]);
      const float dn = dh * (1.0f - z) * (1.0f - n * n);
      const float dr = dn * wide(ah[u]) * r * (1.0f - r);
      const float dz = dh * (wide(h_before[u]) - n) * z * (1.0f - z);
      past_n[u] = dh * z;
      sums.value[0][row][u] = dr;
      sums.value[1][row][u] = dz;
      sums.value[2][row][u] = dn * r;
      store(gates + u, dr);
      store(gates + u + H, dz);
      store(gates + u + 2 * H, dn);
      store(ah + u, dn * r);
    }
  }
}

template <class T>
WISP_CLONES void add_rows(const T* values, int64_t rows, int64_t columns, int64_t stride,
                          float* __restrict sums) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) sums[j] += wide(values[r * stride + j]);
}

}  // namespace

template <class T>
void rnn_forward_tile(const RnnForwardTile<T>& tile, const RnnSums& ah) {
  const bool keep = tile.kept.gates != nullptr;
  if (tile.cell == RnnCell::tanh) return tanh_forward(tile, ah);
  if (tile.cell == RnnCell::lstm)
    return keep ? lstm_forward<true>(tile, ah) : lstm_forward<false>(tile, ah);
  keep ? gru_forward<true>(tile, ah) : gru_forward<false>(tile, ah);
}

template <class T>
void rnn_backward_tile(const RnnBackwardTile<T>& tile, RnnSums& sums) {
  if (tile.cell == RnnCell::tanh) return tanh_backward(tile, sums);
  if (tile.cell == RnnCell::lstm) return lstm_backward(tile, sums);
  gru_backward(tile, sums);
}

template <class T>
void sum_rows(const T* values, int64_t rows, int64_t columns, int64_t stride, bool add,
              float* into) {
  constexpr int64_t kAtOnce = 256;
#pragma omp parallel for schedule(static) if (rows * columns >= 1 << 16)
  for (int64_t begin = 0; begin < columns; begin += kAtOnce) {
    float sums[kAtOnce] = {};
    const int64_t here = std::min(kAtOnce, columns - begin);
    add_rows(values + begin, rows, here, stride, sums);
    for (int64_t j = 0; j < here; ++j) into[begin + j] = add ? into[begin + j] + sums[j] : sums[j];
  }
}

template void rnn_forward_tile(const RnnForwardTile<float>&, const RnnSums&);
template void rnn_forward_tile(const RnnForwardTile<BFloat16>&, const RnnSums&);
template void rnn_backward_tile(const RnnBackwardTile<float>&, RnnSums&);
template void rnn_backward_tile(const RnnBackwardTile<BFloat16>&, RnnSums&);
template void sum_rows(const float*, int64_t, int64_t, int64_t, bool, float*);
template void sum_rows(const BFloat16*, int64_t, int64_t, int64_t, bool, float*);

}  // namespace wisp
