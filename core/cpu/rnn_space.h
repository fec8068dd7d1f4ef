// Memory of recurrent layers on the CPU: what the forward pass keeps, and each pass's pieces of the
// workspace. Called by the stream's thread.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/cpu/packed_product.h"
#include "core/cpu/rnn_cells.h"

namespace wisp {

/// A cutter of memory into pieces aligned to cache lines. Without memory it only counts bytes.
struct RnnPieces {
  std::byte* memory;
  int64_t bytes = 0;

  template <class T>
  T* take(int64_t numel) {
    std::byte* piece = memory ? memory + bytes : nullptr;
    bytes += (numel * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(piece);
  }
};

template <class T>
RnnKept<T> take_kept(const RnnSpec& s, RnnPieces& pieces) {
  const int64_t state = s.total_rows() * s.hidden;
  RnnKept<T> kept{};
  kept.gates = pieces.take<T>(s.gates() * state);
  if (s.cell == RnnCell::lstm) kept.c = pieces.take<float>(state);
  if (s.cell == RnnCell::gru) kept.ah = pieces.take<T>(state);
  return kept;
}

template <class T>
RnnKept<T> kept_of(const RnnSpec& s, const Tensor& saved, int64_t direction) {
  RnnPieces pieces{saved.raw()};
  RnnKept<T> kept{};
  for (int64_t d = 0; d <= direction; ++d) kept = take_kept<T>(s, pieces);
  return kept;
}

template <class T>
struct RnnForwardSpace {
  RnnForwardSpace(const RnnSpec& s, std::byte* memory) : pieces{memory} {
    const int64_t state = s.sequences() * s.hidden;
    const int64_t gates = s.gates() * s.hidden;
    const int64_t depth = packed_depth<T>(s.hidden);
    const int64_t recurrent = strips_of(s.hidden) * s.gates() * kStripColumns * depth;
    scratch =
        pieces.take<T>(std::max(recurrent, product_scratch<T>(s.total_rows(), gates, s.inputs)));
    ax = pieces.take<float>(s.total_rows() * gates);
    for (T*& one : left) one = pieces.take<T>(s.sequences() * depth);
    h = pieces.take<float>(state);
    c = pieces.take<float>(state);
  }
  RnnPieces pieces;
  T* scratch;  // scratch of the products with the input weights; then strips of the recurrent ones
  float* ax;
  T* left[2];
  float *h, *c;
};

template <class T>
struct RnnBackwardSpace {
  RnnBackwardSpace(const RnnSpec& s, std::byte* memory) : pieces{memory} {
    const int64_t state = s.sequences() * s.hidden;
    const int64_t gates = s.gates() * s.hidden;
    const int64_t depth = packed_depth<T>(gates);
    scratch = pieces.take<T>(std::max(strips_of(s.hidden) * kStripColumns * depth,
                                      product_scratch<T>(s.total_rows(), s.inputs, gates)));
    if (sizeof(T) < sizeof(float)) dx = pieces.take<float>(s.total_rows() * s.inputs);
    for (T*& one : left) one = pieces.take<T>(s.sequences() * depth);
    carried = pieces.take<float>(state);
    c_before = pieces.take<float>(state);
    h_before = pieces.take<T>(state);
  }
  RnnPieces pieces;
  T* scratch;           // strips of the recurrent weights; then scratch of the products with the
                        // input weights
  float* dx = nullptr;  // bf16: sums before rounding
  T* left[2];
  float *carried, *c_before;
  T* h_before;
};

template <class T>
struct RnnWeightSpace {
  RnnWeightSpace(const RnnSpec& s, std::byte* memory) : pieces{memory} {
    const int64_t rows = s.total_rows(), gates = s.gates() * s.hidden;
    scratch = pieces.take<T>(std::max(product_scratch<T>(gates, s.inputs, rows),
                                      product_scratch<T>(gates, s.hidden, rows)));
    h_before = pieces.take<T>(rows * s.hidden);
  }
  RnnPieces pieces;
  T *scratch, *h_before;
};

}  // namespace wisp
