// The innermost loop of packed products, a block of rows times a strip of columns, in the
// instructions that this machine has for it.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <span>

#include "core/tensor/dtype.h"

namespace wisp {

/// Columns of a strip of the right factor.
constexpr int64_t kStripColumns = 16;
/// No block of the left factor has more rows.
constexpr int64_t kMostBlockRows = 32;

/// Elements of a strip's column that lie side by side: instructions add products of bf16 in pairs.
/// A strip has all columns for each so many depths.
template <class T>
constexpr int64_t kTogether = 1;
template <>
inline constexpr int64_t kTogether<BFloat16> = 2;

template <class T>
struct BlockKernel {
  /// `sums` (rows, kStripColumns), rows `stride` apart, = or += block · strip. `depth` is a
  /// multiple of kTogether and of the block's elements side by side.
  using Multiply = void (*)(int64_t depth, const T* block, const T* strip, float* sums,
                            int64_t stride, bool add);

  const char* name;
  int64_t most_rows;
  /// A block has its rows one behind the other for each 2^depth_bits depths.
  int depth_bits;
  std::array<Multiply, kMostBlockRows + 1> of_rows;  // by number of rows
  /// What a thread does before blocks of so many rows; 0: behind the last one. Null: nothing.
  void (*prepare)(int64_t rows) = nullptr;
};

/// Those that this machine has, fastest first. Of f32 there is one at least, of bf16 where the CPU
/// has AVX-512 BF16.
template <class T>
std::span<const BlockKernel<T>> block_kernels();
template <>
std::span<const BlockKernel<float>> block_kernels();
template <>
std::span<const BlockKernel<BFloat16>> block_kernels();

/// The fastest of those.
template <class T>
const BlockKernel<T>& block_kernel() {
  assert(!block_kernels<T>().empty());  // backends refuse bf16 where there is none
  return block_kernels<T>().front();
}

/// A thread's products of blocks. Meanwhile nothing else on the thread may use AMX tiles.
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
