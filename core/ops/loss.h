// Checks and kernels of losses and metrics: reductions of a row of logits, and the mean over a
// batch. Any thread may use them.
#pragma once

#include <vector>

#include "core/base/error.h"
#include "core/elementary.h"
#include "core/loops/parallel.h"
#include "core/rnn.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// Throws Error unless the logits of a loss are f32 or f64.
inline void check_wide(const char* op, const Tensor& logits) {
  WISP_CHECK(logits.dtype() == wide_of(logits.dtype()), op, ": logits are ",
             name_of(logits.dtype()), ", expected f32 or f64: widen() what the last layer reads");
}

/// Throws Error unless the logits and labels are those of ctc_loss().
inline void check_sequences(const char* op, const Tensor& logits, const std::vector<int64_t>& rows,
                            const Tensor& labels) {
  check_rows(op, rows);
  const int64_t total = RnnSpec{.rows = rows}.total_rows();
  const Shape& shape = logits.shape();
  WISP_CHECK(shape.rank() == 2 && shape[0] == total && shape[1] > 0, op, ": logits are ", shape,
             ", expected (", total, ", C)");
  check_wide(op, logits);
  WISP_CHECK(labels.defined() && labels.shape().rank() == 2 && labels.shape()[0] == rows.front() &&
                 labels.dtype() == DType::i32,
             op, ": labels are ", labels.shape(), " ", name_of(labels.dtype()), ", expected (",
             rows.front(), ", L) i32");
}

/// Throws Error unless the sums of a metric have the shape, and are f64.
inline void check_sums(const char* op, const Tensor& sums, const Shape& shape) {
  WISP_CHECK(sums.defined() && sums.shape() == shape && sums.dtype() == DType::f64, op,
             ": sums are ", sums.shape(), " ", name_of(sums.dtype()), ", expected ", shape, " f64");
}

/// NaN, the loss of a label out of range.
template <class T>
WISP_HD T not_a_number() {
  return static_cast<T>(float_from_bits(0x7fc00000u));
}

/// The reductions of a row of logits.
template <class T>
struct Largest {
  using Value = T;
  const T* x;
  WISP_HD T identity() const { return x[0]; }
  WISP_HD T map(int64_t i) const { return x[i]; }
  WISP_HD T combine(T a, T b) const { return b > a ? b : a; }
};

template <class T>
struct Sum {
  using Value = T;
  const T* x;
  T largest;
  WISP_HD T identity() const { return T(0); }
  WISP_HD T map(int64_t i) const { return x[i] - largest; }
  WISP_HD T combine(T a, T b) const { return a + b; }
};

template <class T>
struct ExpSum : Sum<T> {
  WISP_HD T map(int64_t i) const { return exponential(Sum<T>::map(i)); }
};

template <class T>
struct Mean {
  using Value = T;
  const T* values;
  T count;
  WISP_HD T identity() const { return 0; }
  WISP_HD T map(int64_t i) const { return values[i] / count; }
  WISP_HD T combine(T a, T b) const { return a + b; }
};

}  // namespace wisp
