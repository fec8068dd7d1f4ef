#include "core/cpu/packed_product.h"

#include <array>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace wisp {
namespace {

template <class T>
using Kernel = void (*)(int64_t depth, const T* block, const T* strip, float* sums, int64_t stride,
                        bool add);

/// By number of rows.
template <class T>
struct Kernels {
  int64_t most_rows = 0;
  std::array<Kernel<T>, kMostBlockRows + 1> of_rows{};
};

/// One row at a time, anywhere.
void plain_kernel(int64_t depth, const float* block, const float* strip, float* sums, int64_t,
                  bool add) {
  float row[kStripColumns] = {};
  for (int64_t p = 0; p < depth; ++p)
    for (int64_t j = 0; j < kStripColumns; ++j) row[j] += block[p] * strip[p * kStripColumns + j];
  for (int64_t j = 0; j < kStripColumns; ++j) sums[j] = add ? sums[j] + row[j] : row[j];
}

#if defined(__x86_64__)

// How far ahead strips are asked for: those of large layers come from memory, which at 8 KiB keeps
// up with the products of 20 rows (f32, 1500 x 6000: 110 GFLOP/s without, 250 with; peak 250).
constexpr int64_t kAhead = 128 * kStripColumns;

__attribute__((target("avx512f"))) inline void put(__m512 sum, float* into, bool add) {
  _mm512_storeu_ps(into, add ? _mm512_add_ps(_mm512_loadu_ps(into), sum) : sum);
}

template <int kRows>
__attribute__((target("avx512f"))) void avx512_kernel(int64_t depth, const float* block,
                                                      const float* strip, float* sums,
                                                      int64_t stride, bool add) {
  __m512 row[kRows];
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r) row[r] = _mm512_setzero_ps();
  for (int64_t p = 0; p < depth; ++p) {
    _mm_prefetch(strip + kAhead, _MM_HINT_T0);
    const __m512 right = _mm512_loadu_ps(strip);
#pragma GCC unroll 24
    for (int r = 0; r < kRows; ++r)
      row[r] = _mm512_fmadd_ps(_mm512_set1_ps(block[r]), right, row[r]);
    block += kRows;
    strip += kStripColumns;
  }
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r) put(row[r], sums + r * stride, add);
}

template <int kRows>
__attribute__((target("avx512f,avx512bf16"))) void bf16_kernel(int64_t depth, const BFloat16* block,
                                                               const BFloat16* strip, float* sums,
                                                               int64_t stride, bool add) {
  __m512 row[kRows];
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r) row[r] = _mm512_setzero_ps();
  for (int64_t p = 0; p < depth; p += 2) {
    _mm_prefetch(strip + 2 * kAhead, _MM_HINT_T0);
    const auto right = reinterpret_cast<__m512bh>(_mm512_loadu_si512(strip));
#pragma GCC unroll 24
    for (int r = 0; r < kRows; ++r) {
      int pair;
      std::memcpy(&pair, block + 2 * r, sizeof pair);
      row[r] = _mm512_dpbf16_ps(row[r], right, reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair)));
    }
    block += 2 * kRows;
    strip += 2 * kStripColumns;
  }
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r) put(row[r], sums + r * stride, add);
}

template <int kRows>
__attribute__((target("avx2,fma"))) void avx2_kernel(int64_t depth, const float* block,
                                                     const float* strip, float* sums,
                                                     int64_t stride, bool add) {
  __m256 row[kRows][2];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) row[r][0] = row[r][1] = _mm256_setzero_ps();
  for (int64_t p = 0; p < depth; ++p) {
    _mm_prefetch(strip + kAhead, _MM_HINT_T0);
    const __m256 low = _mm256_loadu_ps(strip), high = _mm256_loadu_ps(strip + 8);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m256 left = _mm256_set1_ps(block[r]);
      row[r][0] = _mm256_fmadd_ps(left, low, row[r][0]);
      row[r][1] = _mm256_fmadd_ps(left, high, row[r][1]);
    }
    block += kRows;
    strip += kStripColumns;
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    for (int half = 0; half < 2; ++half) {
      float* into = sums + r * stride + 8 * half;
      const __m256 sum = row[r][half];
      _mm256_storeu_ps(into, add ? _mm256_add_ps(_mm256_loadu_ps(into), sum) : sum);
    }
  }
}

template <int... kRows>
Kernels<float> avx512_kernels(std::integer_sequence<int, kRows...>) {
  return {sizeof...(kRows), {nullptr, avx512_kernel<kRows + 1>...}};
}
template <int... kRows>
Kernels<BFloat16> bf16_kernels(std::integer_sequence<int, kRows...>) {
  return {sizeof...(kRows), {nullptr, bf16_kernel<kRows + 1>...}};
}
template <int... kRows>
Kernels<float> avx2_kernels(std::integer_sequence<int, kRows...>) {
  return {sizeof...(kRows), {nullptr, avx2_kernel<kRows + 1>...}};
}

#endif

template <class T>
Kernels<T> chosen_kernels();

template <>
Kernels<float> chosen_kernels() {
#if defined(__x86_64__)
  // so many rows that their sums fit into the registers
  if (__builtin_cpu_supports("avx512f"))
    return avx512_kernels(std::make_integer_sequence<int, kMostBlockRows>{});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return avx2_kernels(std::make_integer_sequence<int, 6>{});
#endif
  return {1, {nullptr, plain_kernel}};
}

template <>
Kernels<BFloat16> chosen_kernels() {
#if defined(__x86_64__)
  return bf16_kernels(std::make_integer_sequence<int, kMostBlockRows>{});
#else
  return {};
#endif
}

template <class T>
const Kernels<T>& kernels() {
  static const Kernels<T> chosen = chosen_kernels<T>();
  return chosen;
}

template <class T, class S>
T rounded(S value) {
  if constexpr (std::is_same_v<T, S>) {
    return value;
  } else {
    return T(value);
  }
}

// What of the factors multiply() has packed at once: a part of the depth, for which as many rows as
// half of a level 2 cache holds meet each strip.
template <class T>
constexpr int64_t kDepthAtOnce = 768 * kTogether<T>;
constexpr int64_t kRowsAtOnce = 160;

}  // namespace

template <class T>
RowBlocks<T>::RowBlocks(int64_t all_rows)
    : rows(all_rows), count((all_rows + kernels<T>().most_rows - 1) / kernels<T>().most_rows) {}

template <class T, class S>
void pack_block(Strided<S> from, int64_t rows, int64_t depth, T* packed) {
  constexpr int64_t k = kTogether<T>;
  const int64_t even = depth / k * k;
  for (int64_t p = 0; p < even; p += k) {
    const S* source = from.data + p * from.column_stride;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < k; ++i)
        *packed++ = rounded<T>(source[r * from.row_stride + i * from.column_stride]);
  }
  if (even == depth) return;
  for (int64_t r = 0; r < rows; ++r) {
    *packed++ = rounded<T>(from.data[r * from.row_stride + even * from.column_stride]);
    *packed++ = T(0.0f);
  }
}

template <class T, class S>
void pack_strip(Strided<S> from, int64_t depth, int64_t columns, T* packed) {
  constexpr int64_t k = kTogether<T>;
  std::fill(packed, packed + packed_depth<T>(depth) * kStripColumns, T(0.0f));
  for (int64_t p = 0; p < depth; ++p) {
    const S* source = from.data + p * from.row_stride;
    T* into = packed + p / k * k * kStripColumns + p % k;
    for (int64_t j = 0; j < columns; ++j) into[j * k] = rounded<T>(source[j * from.column_stride]);
  }
}

template <class T>
void multiply_block(int64_t rows, int64_t depth, const T* block, const T* strip, float* sums,
                    int64_t stride, bool add) {
  kernels<T>().of_rows[static_cast<size_t>(rows)](depth, block, strip, sums, stride, add);
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
  for (int64_t from = 0; from < k; from += kDepthAtOnce<T>) {
    const int64_t depth = std::min(kDepthAtOnce<T>, k - from);
    const int64_t packed = packed_depth<T>(depth);
    // strips first: whole cache lines
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
            multiply_block(rows, packed, block_left, right, into, stride, sum);
            continue;
          }
          float edge[kMostBlockRows * kStripColumns];
          multiply_block(rows, packed, block_left, right, edge, kStripColumns, false);
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

template struct RowBlocks<float>;
template struct RowBlocks<BFloat16>;

template void pack_block(Strided<float>, int64_t, int64_t, float*);
template void pack_block(Strided<float>, int64_t, int64_t, BFloat16*);
template void pack_block(Strided<BFloat16>, int64_t, int64_t, BFloat16*);
template void pack_strip(Strided<float>, int64_t, int64_t, float*);
template void pack_strip(Strided<float>, int64_t, int64_t, BFloat16*);
template void pack_strip(Strided<BFloat16>, int64_t, int64_t, BFloat16*);

template void multiply_block(int64_t, int64_t, const float*, const float*, float*, int64_t, bool);
template void multiply_block(int64_t, int64_t, const BFloat16*, const BFloat16*, float*, int64_t,
                             bool);

template int64_t product_scratch<float>(int64_t, int64_t, int64_t);
template int64_t product_scratch<BFloat16>(int64_t, int64_t, int64_t);

template void multiply(int64_t, int64_t, int64_t, Strided<float>, Strided<float>, float*, int64_t,
                       bool, float*);
template void multiply(int64_t, int64_t, int64_t, Strided<BFloat16>, Strided<float>, float*,
                       int64_t, bool, BFloat16*);
template void multiply(int64_t, int64_t, int64_t, Strided<BFloat16>, Strided<BFloat16>, float*,
                       int64_t, bool, BFloat16*);

}  // namespace wisp
