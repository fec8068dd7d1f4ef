// Matrix products with factors packed in the order in which the kernel reads them. They are in f32,
// or have factors rounded to bf16 and sums in f32. A factor that many products share is packed
// once. One thread sums each element in an order that depends on the shape alone. Any thread may
// call.
#pragma once

#include <algorithm>

#include "core/cpu/block_product.h"

namespace wisp {

/// A depth rounded up to whole groups; the packed factor has zeros there.
template <class T>
int64_t packed_depth(int64_t depth);

/// The cutting of a left factor's rows into blocks for this machine's kernel. Packed blocks follow
/// each other. A block holds its rows consecutively for each group of 2^depth_bits depths.
template <class T>
struct RowBlocks {
  explicit RowBlocks(int64_t all_rows);

  /// First row of a block. The first rows % count blocks have one row more than the others.
  int64_t begin(int64_t block) const {
    return block * (rows / count) + std::min(block, rows % count);
  }
  int64_t size(int64_t block) const { return begin(block + 1) - begin(block); }
  /// The index of element (row of the block, depth) after the block's begin · packed_depth.
  int64_t place(int64_t block_rows, int64_t row, int64_t depth) const {
    const int64_t group = depth >> depth_bits;
    return ((group * block_rows + row) << depth_bits) + depth - (group << depth_bits);
  }

  int64_t rows, count;
  int depth_bits;
};

inline int64_t strips_of(int64_t columns) { return (columns + kStripColumns - 1) / kStripColumns; }

/// A factor in memory: element (row, column) is data[row · row_stride + column · column_stride].
template <class S>
struct Strided {
  const S* data;
  int64_t row_stride, column_stride;

  Strided from(int64_t row, int64_t column) const {
    return {data + row * row_stride + column * column_stride, row_stride, column_stride};
  }
};

/// Packs (rows, depth) of a left factor as one block.
template <class T, class S>
void pack_block(Strided<S> from, int64_t rows, int64_t depth, T* packed);

/// Packs (depth, columns) of a right factor, at most kStripColumns columns; missing columns become
/// zero.
template <class T, class S>
void pack_strip(Strided<S> from, int64_t depth, int64_t columns, T* packed);

/// Elements of T of scratch memory that multiply() needs.
template <class T>
int64_t product_scratch(int64_t m, int64_t n, int64_t k);

/// Computes C (m, n), whose rows are `stride` apart, = or += A (m, k) · B (k, n).
template <class T, class A, class B>
void multiply(int64_t m, int64_t n, int64_t k, Strided<A> a, Strided<B> b, float* c, int64_t stride,
              bool add, T* scratch);

}  // namespace wisp
