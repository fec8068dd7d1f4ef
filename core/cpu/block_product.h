// The innermost loop of packed products: a block of rows times a strip of columns, in the fastest
// instructions of this machine. Any thread may use it.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <span>

#include "core/tensor/dtype.h"

namespace wisp {

/// Columns of a strip of the right factor.
constexpr int64_t kStripColumns = 16;
/// The most rows of a block of the left factor.
constexpr int64_t kMostBlockRows = 32;

/// Number of depths of a column that a strip stores together: 2 for bf16, whose instructions add
/// products in pairs. A strip holds all columns for each group of kTogether depths.
template <class T>
constexpr int64_t kTogether = 1;
template <>
inline constexpr int64_t kTogether<BFloat16> = 2;

template <class T>
struct BlockKernel {
  /// Writes `sums` (rows, kStripColumns), whose rows are `stride` apart, = or += block · strip.
  /// `depth` is a multiple of kTogether and of 2^depth_bits.
  using Multiply = void (*)(int64_t depth, const T* block, const T* strip, float* sums,
                            int64_t stride, bool add);

  const char* name;
  int64_t most_rows;
  /// A block holds its rows consecutively for each group of 2^depth_bits depths.
  int depth_bits;
  std::array<Multiply, kMostBlockRows + 1> of_rows;  // index: number of rows
  /// A thread calls it before blocks of `rows` rows, and with 0 after the last block. Null if
  /// nothing is needed.
  void (*prepare)(int64_t rows) = nullptr;
};

/// The kernels that this machine supports, fastest first. f32 has at least one; bf16 has one only
/// on CPUs with AVX-512 BF16.
template <class T>
std::span<const BlockKernel<T>> block_kernels();
template <>
std::span<const BlockKernel<float>> block_kernels();
template <>
std::span<const BlockKernel<BFloat16>> block_kernels();

/// The fastest kernel.
template <class T>
const BlockKernel<T>& block_kernel() {
  assert(!block_kernels<T>().empty());  // backends refuse bf16 without a kernel
  return block_kernels<T>().front();
}

/// A thread's products of blocks. While it lives, nothing else on the thread may use AMX tiles.
template <class T>
class BlockProduct {
 public:
  explicit BlockProduct(const BlockKernel<T>& kernel = block_kernel<T>()) : kernel_(kernel) {}
  BlockProduct(const BlockProduct&) = delete;
  BlockProduct& operator=(const BlockProduct&) = delete;
  ~BlockProduct() {
    if (rows_ != 0 && kernel_.prepare) kernel_.prepare(0);
  }

  void operator()(int64_t rows, int64_t depth, const T* block, const T* strip, float* sums,
                  int64_t stride, bool add) {
    if (rows != rows_ && kernel_.prepare) kernel_.prepare(rows);
    rows_ = rows;
    kernel_.of_rows[static_cast<size_t>(rows)](depth, block, strip, sums, stride, add);
  }

 private:
  const BlockKernel<T>& kernel_;
  int64_t rows_ = 0;
};

}  // namespace wisp
