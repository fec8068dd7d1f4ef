// What lies between the products of a recurrent layer: a cell forward and back, for a tile of a
// position, that is a few of its rows and kStripColumns of its units or fewer, and sums over rows.
// T is the activations' type. Pointers are to the tile's first row and unit.
#pragma once

#include "core/cpu/packed_product.h"
#include "core/rnn.h"

namespace wisp {

/// A tile's products with the recurrent weights: gate, row, unit.
struct RnnSums {
  float value[4][kMostBlockRows][kStripColumns];
};

/// What rnn() keeps of one direction. rnn_dx() puts gradients in the place of what it reads.
template <class T>
struct RnnKept {
  T* gates;  // (rows, gates H) behind their functions; then the gradients of ax
  float* c;  // (rows, H), lstm
  T* ah;     // (rows, H), gru: of n; then its gradient
};

template <class T>
struct RnnForwardTile {
  RnnCell cell;
  int64_t hidden, rows, units;
  const float* ax;                           // (rows, gates H), without the bias
  const float *input_bias, *recurrent_bias;  // (gates H)
  float *h, *c;                              // (rows, H): the state, which moves on
  T* y;                                      // rows y_stride apart
  int64_t y_stride;
  RnnKept<T> kept;  // null if nothing is; `gates` may be ax
};

template <class T>
void rnn_forward_tile(const RnnForwardTile<T>& tile, const RnnSums& ah);

/// Rows of the state before a position: the first `rows` of `values`, those after of `start`.
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
  float* carried;  // (rows, H), from position to position: lstm dL/dc; gru the part of dL/dh past n
};

/// `sums` are the recurrent part of dL/dh, in their first gate; they become the gradients of ah.
template <class T>
void rnn_backward_tile(const RnnBackwardTile<T>& tile, RnnSums& sums);

/// into[j] = or += the sum of values (rows, columns), rows `stride` apart, over rows.
template <class T>
void sum_rows(const T* values, int64_t rows, int64_t columns, int64_t stride, bool add,
              float* into);

}  // namespace wisp
