#include "core/cpu/packed_product.h"

#include <algorithm>
#include <cstring>

#include "core/loops/parallel.h"

namespace wisp {
namespace {

template <class T, class S>
T rounded(S value) {
  if constexpr (std::is_same_v<T, S>) {
    return value;
  } else {
    return T(value);
  }
}

/// pack_block() for 2^kBits neighbouring depths per row.
template <int kBits, class T, class S>
void pack_rows(Strided<S> from, int64_t rows, int64_t depth, T* packed) {
  constexpr int64_t kSide = 1 << kBits;
  for (int64_t p = 0; p < depth; p += kSide) {
    const int64_t there = std::min(kSide, depth - p);
    for (int64_t r = 0; r < rows; ++r, packed += kSide) {
      const S* source = from.data + r * from.row_stride + p * from.column_stride;
      for (int64_t i = 0; i < kSide; ++i)
        packed[i] = i < there ? rounded<T>(source[i * from.column_stride]) : T(0.0f);
    }
  }
}

// Whole strips are packed in squares, so that reads follow the lines of memory.
constexpr int64_t kSquare = kStripColumns;

// Depths of prefetch: CPUs do not predict lines so far apart.
constexpr int64_t kRowsAhead = 32;

/// Packs `depth` depths of a whole strip whose columns are contiguous.
template <class T, class S>
WISP_CLONES void pack_columns(const Strided<S> from, const int64_t depth, T* packed) {
  constexpr int64_t k = kTogether<T>;
  for (int64_t p = 0; p < depth; p += kSquare) {
    T column[kStripColumns][kSquare];
    for (int64_t j = 0; j < kStripColumns; ++j) {
      const S* source = from.data + p + j * from.column_stride;
      for (int64_t i = 0; i < kSquare; ++i) column[j][i] = rounded<T>(source[i]);
    }
    for (int64_t i = 0; i < kSquare; i += k)
      for (int64_t j = 0; j < kStripColumns; ++j, packed += k)
        std::memcpy(packed, &column[j][i], k * sizeof(T));
  }
}

/// Packs `depth` depths of a whole strip whose rows are contiguous.
template <class T, class S>
WISP_CLONES void pack_depths(const Strided<S> from, const int64_t depth, T* packed) {
  constexpr int64_t k = kTogether<T>;
  for (int64_t p = 0; p < depth; p += k, packed += k * kStripColumns)
    for (int64_t i = 0; i < k; ++i) {
      const S* source = from.data + (p + i) * from.row_stride;
      __builtin_prefetch(source + kRowsAhead * from.row_stride);
      __builtin_prefetch(source + kRowsAhead * from.row_stride + kStripColumns - 1);
      for (int64_t j = 0; j < kStripColumns; ++j) packed[j * k + i] = rounded<T>(source[j]);
    }
}

// The part of the factors that multiply() packs at once: a part of the depth. Each strip meets a
// number of rows that fill half of a level 2 cache.
template <class T>
constexpr int64_t kDepthAtOnce = 768 * kTogether<T>;
constexpr int64_t kRowsAtOnce = 160;

}  // namespace

template <class T>
int64_t packed_depth(int64_t depth) {
  const int64_t together = int64_t{1} << block_kernel<T>().depth_bits;
  return (depth + together - 1) / together * together;
}

template <class T>
RowBlocks<T>::RowBlocks(int64_t all_rows)
    : rows(all_rows),
      count((all_rows + block_kernel<T>().most_rows - 1) / block_kernel<T>().most_rows),
      depth_bits(block_kernel<T>().depth_bits) {}

template <class T, class S>
void pack_block(Strided<S> from, int64_t rows, int64_t depth, T* packed) {
  if constexpr (std::is_same_v<T, float>) {
    pack_rows<0>(from, rows, depth, packed);
  } else if (block_kernel<T>().depth_bits == 1) {
    pack_rows<1>(from, rows, depth, packed);
  } else {
    pack_rows<5>(from, rows, depth, packed);
  }
}

template <class T, class S>
void pack_strip(Strided<S> from, int64_t depth, int64_t columns, T* packed) {
  int64_t whole = columns < kStripColumns ? 0 : depth / kSquare * kSquare;
  if (from.row_stride == 1) {
    pack_columns(from, whole, packed);
  } else if (from.column_stride == 1) {
    pack_depths(from, whole, packed);
  } else {
    whole = 0;
  }
  constexpr int64_t k = kTogether<T>;
  std::fill(packed + whole * kStripColumns, packed + packed_depth<T>(depth) * kStripColumns,
            T(0.0f));
  for (int64_t p = whole; p < depth; ++p) {
    const S* source = from.data + p * from.row_stride;
    T* into = packed + p / k * k * kStripColumns + p % k;
    for (int64_t j = 0; j < columns; ++j) into[j * k] = rounded<T>(source[j * from.column_stride]);
  }
}

template <class T>
int64_t product_scratch(int64_t m, int64_t n, int64_t k) {
  const int64_t depth = packed_depth<T>(std::min(k, kDepthAtOnce<T>));
  return (m + kStripColumns - 1 + strips_of(n) * kStripColumns) * depth;
}

template <class T, class A, class B>
void multiply(int64_t m, int64_t n, int64_t k, Strided<A> a, Strided<B> b, float* c, int64_t stride,
              bool add, T* scratch) {
  const RowBlocks<T> blocks(m);
  const int64_t blocks_at_once = std::max<int64_t>(1, blocks.count * kRowsAtOnce / m);
  const int64_t strips = strips_of(n);
#pragma omp parallel if (m * n * k >= 1 << 17)
  {
    BlockProduct<T> product;
    for (int64_t from = 0; from < k; from += kDepthAtOnce<T>) {
      const int64_t depth = std::min(kDepthAtOnce<T>, k - from);
      const int64_t packed = packed_depth<T>(depth);
      // strips first, because they are whole cache lines
      T* const left = scratch + strips * kStripColumns * packed;
#pragma omp for schedule(static) nowait
      for (int64_t block = 0; block < blocks.count; ++block)
        pack_block(a.from(blocks.begin(block), from), blocks.size(block), depth,
                   left + blocks.begin(block) * packed);
#pragma omp for schedule(static)
      for (int64_t strip = 0; strip < strips; ++strip)
        pack_strip(b.from(from, strip * kStripColumns), depth,
                   std::min(kStripColumns, n - strip * kStripColumns),
                   scratch + strip * kStripColumns * packed);
      for (int64_t first = 0; first < blocks.count; first += blocks_at_once) {
        const int64_t last = std::min(blocks.count, first + blocks_at_once);
#pragma omp for collapse(2) schedule(static) nowait
        for (int64_t strip = 0; strip < strips; ++strip) {
          for (int64_t block = first; block < last; ++block) {
            const int64_t rows = blocks.size(block);
            const int64_t column = strip * kStripColumns;
            const T* right = scratch + column * packed;
            const T* block_left = left + blocks.begin(block) * packed;
            float* into = c + blocks.begin(block) * stride + column;
            const bool sum = add || from > 0;
            if (column + kStripColumns <= n) {
              product(rows, packed, block_left, right, into, stride, sum);
              continue;
            }
            float edge[kMostBlockRows * kStripColumns];
            product(rows, packed, block_left, right, edge, kStripColumns, false);
            for (int64_t r = 0; r < rows; ++r)
              for (int64_t j = 0; j < n - column; ++j) {
                const float value = edge[r * kStripColumns + j];
                into[r * stride + j] = sum ? into[r * stride + j] + value : value;
              }
          }
        }
      }
#pragma omp barrier
    }
  }
}

template int64_t packed_depth<float>(int64_t);
template int64_t packed_depth<BFloat16>(int64_t);
template struct RowBlocks<float>;
template struct RowBlocks<BFloat16>;

template void pack_block(Strided<float>, int64_t, int64_t, float*);
template void pack_block(Strided<float>, int64_t, int64_t, BFloat16*);
template void pack_block(Strided<BFloat16>, int64_t, int64_t, BFloat16*);
template void pack_strip(Strided<float>, int64_t, int64_t, float*);
template void pack_strip(Strided<float>, int64_t, int64_t, BFloat16*);
template void pack_strip(Strided<BFloat16>, int64_t, int64_t, BFloat16*);

template int64_t product_scratch<float>(int64_t, int64_t, int64_t);
template int64_t product_scratch<BFloat16>(int64_t, int64_t, int64_t);

template void multiply(int64_t, int64_t, int64_t, Strided<float>, Strided<float>, float*, int64_t,
                       bool, float*);
template void multiply(int64_t, int64_t, int64_t, Strided<BFloat16>, Strided<float>, float*,
                       int64_t, bool, BFloat16*);
template void multiply(int64_t, int64_t, int64_t, Strided<BFloat16>, Strided<BFloat16>, float*,
                       int64_t, bool, BFloat16*);

}  // namespace wisp
