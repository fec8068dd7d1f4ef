// Matrix products whose factors are packed as the kernel reads them, in f32, and with factors
// rounded to bf16 and sums in f32. What many products share is packed once for all of them. Each
// element is summed by one thread in an order that depends on the shape alone.
#pragma once

#include <algorithm>

#include "core/cpu/block_product.h"

namespace wisp {

/// A depth as it is packed, filled up with zeros.
template <class T>
int64_t packed_depth(int64_t depth);

/// How rows of a left factor are cut for this machine's kernel. Packed, block after block, a block
/// has its rows one behind the other for each few depths, as the kernel takes them.
template <class T>
struct RowBlocks {
  explicit RowBlocks(int64_t all_rows);

  /// The first blocks have a row more than the last ones, if not all have as many.
  int64_t begin(int64_t block) const {
    return block * (rows / count) + std::min(block, rows % count);
  }
  int64_t size(int64_t block) const { return begin(block + 1) - begin(block); }
  /// Where element (row of the block, depth) lies behind the block's begin · packed_depth.
  int64_t place(int64_t block_rows, int64_t row, int64_t depth) const {
    const int64_t group = depth >> depth_bits;
    return ((group * block_rows + row) << depth_bits) + depth - (group << depth_bits);
  }

  int64_t rows, count;
  int depth_bits;
};

inline int64_t strips_of(int64_t columns) { return (columns + kStripColumns - 1) / kStripColumns; }

/// Element (row, column) of a factor is data[row · row_stride + column · column_stride].
template <class S>
struct Strided {
  const S* data;
  int64_t row_stride, column_stride;

  Strided from(int64_t row, int64_t column) const {
    return {data + row * row_stride + column * column_stride, row_stride, column_stride};
  }
};

/// Packs (rows, depth) of a left factor that are one block.
template <class T, class S>
void pack_block(Strided<S> from, int64_t rows, int64_t depth, T* packed);

/// Packs (depth, columns) of a right factor, at most kStripColumns columns; the others become zero.
template <class T, class S>
void pack_strip(Strided<S> from, int64_t depth, int64_t columns, T* packed);

/// Elements of T of scratch that multiply() needs.
template <class T>
int64_t product_scratch(int64_t m, int64_t n, int64_t k);

/// C (m, n), rows `stride` apart, = or += A (m, k) · B (k, n).
template <class T, class A, class B>
void multiply(int64_t m, int64_t n, int64_t k, Strided<A> a, Strided<B> b, float* c, int64_t stride,
              bool add, T* scratch);

}  // namespace wisp
