// The part of a recurrent layer between its products: cells forward and backward, and sums over
// rows. A tile is a few rows of a position and at most kStripColumns of its units. T is the
// activations' type. Pointers are to the tile's first row and unit. Any thread may call.
#pragma once

#include "core/cpu/packed_product.h"
#include "core/rnn.h"

namespace wisp {

/// A tile's products with the recurrent weights: [gate][row][unit].
struct RnnSums {
  float value[4][kMostBlockRows][kStripColumns];
};

/// The tensors that rnn() keeps of one direction. rnn_dx() replaces them by gradients.
template <class T>
struct RnnKept {
  T* gates;  // (rows, gates H) after their functions; then gradients of ax
  float* c;  // (rows, H), lstm
  T* ah;     // (rows, H), gru: ah of n; then its gradient
};

template <class T>
struct RnnForwardTile {
  RnnCell cell;
  int64_t hidden, rows, units;
  const float* ax;                           // (rows, gates H), without the bias
  const float *input_bias, *recurrent_bias;  // (gates H)
  float *h, *c;                              // (rows, H): the state, updated in place
  T* y;                                      // rows y_stride apart
  int64_t y_stride;
  RnnKept<T> kept;  // null if nothing is kept; `gates` may be ax
};

template <class T>
void rnn_forward_tile(const RnnForwardTile<T>& tile, const RnnSums& ah);

/// Rows of the state before a position: the first `rows` rows from `values`, the others from
/// `start`.
template <class S>
struct RnnEarlier {
  const S* values;
  int64_t stride, rows;
  const S* start;
  int64_t start_stride;

  const S* row(int64_t r) const {
    return r < rows ? values + r * stride : start + r * start_stride;
  }
};

template <class T>
struct RnnBackwardTile {
  RnnCell cell;
  int64_t hidden, rows, units;
  const T* dy;  // rows y_stride apart
  int64_t y_stride;
  RnnEarlier<float> c_before;
  RnnEarlier<T> h_before;
  RnnKept<T> kept;
  float* carried;  // (rows, H), across positions: lstm dL/dc; gru dL/dh past n
};

/// Reads the recurrent part of dL/dh in the first gate of `sums`, and writes the gradients of ah
/// there.
template <class T>
void rnn_backward_tile(const RnnBackwardTile<T>& tile, RnnSums& sums);

/// Writes into[j] = or += the sum over rows of values (rows, columns), whose rows are `stride`
/// apart.
template <class T>
void sum_rows(const T* values, int64_t rows, int64_t columns, int64_t stride, bool add,
              float* into);

}  // namespace wisp
