#include "core/cpu/block_product.h"

#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace wisp {
namespace {

/// A kernel of one row, for any machine.
void plain_kernel(int64_t depth, const float* block, const float* strip, float* sums, int64_t,
                  bool add) {
  float row[kStripColumns] = {};
  for (int64_t p = 0; p < depth; ++p)
    for (int64_t j = 0; j < kStripColumns; ++j) row[j] += block[p] * strip[p * kStripColumns + j];
  for (int64_t j = 0; j < kStripColumns; ++j) sums[j] = add ? sums[j] + row[j] : row[j];
}

#if defined(__x86_64__)

// Distance of prefetch in a strip. Strips of large layers come from memory; at 8 KiB memory keeps
// up with the products of 20 rows (f32, 1500 x 6000: 110 GFLOP/s without, 250 with; peak 250).
constexpr int64_t kStripAhead = 128 * kStripColumns;

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
    _mm_prefetch(strip + kStripAhead, _MM_HINT_T0);
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
    _mm_prefetch(strip + 2 * kStripAhead, _MM_HINT_T0);
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
    _mm_prefetch(strip + kStripAhead, _MM_HINT_T0);
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

// AMX. Tiles 0 and 1 are sums, 2 and 3 are up to 16 rows each of a block for 32 depths, 4 is those
// depths of a strip. Instructions name tiles by number, so the code has no other names. Two strips
// at once were not faster, because the level 2 cache is the limit.
constexpr int kTileRows = 16;
constexpr int kTileDepth = 32;

/// The number of a block's rows in tile 2; tile 3 has the others.
constexpr int upper_rows(int rows) { return rows <= kTileRows ? rows : (rows + 1) / 2; }

/// The operand of LDTILECFG.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

constexpr TileShapes shapes_for(int block_rows) {
  TileShapes shapes;
  const int upper = upper_rows(block_rows), lower = block_rows - upper;
  const int rows[] = {upper, lower, upper, lower, kTileDepth / 2};
  for (int tile = 0; tile < 5; ++tile) {
    shapes.rows[tile] = static_cast<uint8_t>(rows[tile]);
    shapes.row_bytes[tile] = rows[tile] > 0 ? 64 : 0;
  }
  return shapes;
}

template <int... kRows>
constexpr auto all_shapes(std::integer_sequence<int, kRows...>) {
  return std::array{shapes_for(kRows)...};
}

__attribute__((target("amx-tile"))) void shape_tiles(int64_t rows) {
  static constexpr auto kShapes = all_shapes(std::make_integer_sequence<int, 2 * kTileRows + 1>{});
  if (rows == 0) return _tile_release();
  _tile_loadconfig(&kShapes[static_cast<size_t>(rows)]);
}

template <int kRows>
__attribute__((target("amx-tile,amx-bf16"))) void amx_kernel(int64_t depth, const BFloat16* block,
                                                             const BFloat16* strip, float* sums,
                                                             int64_t stride, bool add) {
  constexpr int kUpper = upper_rows(kRows);
  constexpr bool kLower = kUpper < kRows;
  const int64_t row_bytes = stride * static_cast<int64_t>(sizeof(float));
  if (add) {
    _tile_loadd(0, sums, row_bytes);
    if constexpr (kLower) _tile_loadd(1, sums + kUpper * stride, row_bytes);
  } else {
    _tile_zero(0);
    if constexpr (kLower) _tile_zero(1);
  }
  for (int64_t p = 0; p < depth; p += kTileDepth) {
    _tile_loadd(4, strip, 64);
    _tile_loadd(2, block, 64);
    _tile_dpbf16ps(0, 2, 4);
    if constexpr (kLower) {
      _tile_loadd(3, block + kUpper * kTileDepth, 64);
      _tile_dpbf16ps(1, 3, 4);
    }
    block += kRows * kTileDepth;
    strip += kStripColumns * kTileDepth;
  }
  _tile_stored(0, sums, row_bytes);
  if constexpr (kLower) _tile_stored(1, sums + kUpper * stride, row_bytes);
}

/// __builtin_cpu_supports() has no name for this feature that clang 14 knows.
bool has_amx_bf16() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kBf16) && (edx & kTile);
}

/// Whether the system lets this process use tiles. One request serves all threads.
bool tiles_allowed() {
#if defined(__linux__)
  constexpr int64_t kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
#else
  return false;
#endif
}

template <int... kRows>
BlockKernel<float> avx512_kernels(std::integer_sequence<int, kRows...>) {
  return {"avx512", sizeof...(kRows), 0, {nullptr, avx512_kernel<kRows + 1>...}};
}
template <int... kRows>
BlockKernel<float> avx2_kernels(std::integer_sequence<int, kRows...>) {
  return {"avx2", sizeof...(kRows), 0, {nullptr, avx2_kernel<kRows + 1>...}};
}
template <int... kRows>
BlockKernel<BFloat16> bf16_kernels(std::integer_sequence<int, kRows...>) {
  return {"avx512_bf16", sizeof...(kRows), 1, {nullptr, bf16_kernel<kRows + 1>...}};
}
template <int... kRows>
BlockKernel<BFloat16> amx_kernels(std::integer_sequence<int, kRows...>) {
  return {"amx_bf16", sizeof...(kRows), 5, {nullptr, amx_kernel<kRows + 1>...}, shape_tiles};
}

#endif

std::vector<BlockKernel<float>> f32_kernels() {
  std::vector<BlockKernel<float>> found;
#if defined(__x86_64__)
  // the most rows whose sums fit the registers
  if (__builtin_cpu_supports("avx512f"))
    found.push_back(avx512_kernels(std::make_integer_sequence<int, 24>{}));
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    found.push_back(avx2_kernels(std::make_integer_sequence<int, 6>{}));
#endif
  found.push_back({"plain", 1, 0, {nullptr, plain_kernel}});
  return found;
}

std::vector<BlockKernel<BFloat16>> bf16_kernels() {
  std::vector<BlockKernel<BFloat16>> found;
#if defined(__x86_64__)
  if (has_amx_bf16() && tiles_allowed())
    found.push_back(amx_kernels(std::make_integer_sequence<int, 2 * kTileRows>{}));
  if (__builtin_cpu_supports("avx512bf16"))
    found.push_back(bf16_kernels(std::make_integer_sequence<int, 24>{}));
#endif
  return found;
}

}  // namespace

template <>
std::span<const BlockKernel<float>> block_kernels() {
  static const std::vector<BlockKernel<float>> kernels = f32_kernels();
  return kernels;
}

template <>
std::span<const BlockKernel<BFloat16>> block_kernels() {
  static const std::vector<BlockKernel<BFloat16>> kernels = bf16_kernels();
  return kernels;
}

}  // namespace wisp
