// Tests of each block-product kernel that this machine supports, against the definition of a
// product.
#include "core/cpu/block_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.h"

namespace wisp {
namespace {

/// Drawn numbers that bf16 holds exactly.
template <class T>
std::vector<T> drawn(int64_t numel, uint64_t seed) {
  std::vector<T> values;
  const Philox philox(seed, 0, 0);
  for (int64_t i = 0; i < numel; ++i)
    values.push_back(
        T(static_cast<float>(BFloat16(philox.nearly_normal(static_cast<uint64_t>(i))))));
  return values;
}

/// Checks all block sizes in turn with one BlockProduct.
template <class T>
void expect_products(const BlockKernel<T>& kernel) {
  SCOPED_TRACE(kernel.name);
  const int64_t side = int64_t{1} << kernel.depth_bits, stride = kStripColumns + 3;
  BlockProduct<T> product(kernel);
  for (int64_t rows = 1; rows <= kernel.most_rows; ++rows) {
    for (const bool add : {false, true}) {
      const int64_t depth = 32 * (rows % 3 + 1);
      const std::vector<T> block = drawn<T>(rows * depth, 1);
      const std::vector<T> strip = drawn<T>(depth * kStripColumns, 2);
      const std::vector<float> before = drawn<float>((rows + 1) * stride, 3);
      std::vector<float> sums = before;
      product(rows, depth, block.data(), strip.data(), sums.data(), stride, add);
      for (int64_t row = 0; row <= rows; ++row) {
        for (int64_t column = 0; column < stride; ++column) {
          const auto at = static_cast<size_t>(row * stride + column);
          if (row == rows || column >= kStripColumns) {
            ASSERT_EQ(sums[at], before[at]) << row << ", " << column << " is none of its sums";
            continue;
          }
          double sum = add ? static_cast<double>(before[at]) : 0.0;
          for (int64_t p = 0; p < depth; ++p) {
            const int64_t left = (p / side * rows + row) * side + p % side;
            const int64_t k = kTogether<T>;
            const int64_t right = (p / k * kStripColumns + column) * k + p % k;
            sum += static_cast<double>(static_cast<float>(block[static_cast<size_t>(left)])) *
                   static_cast<double>(static_cast<float>(strip[static_cast<size_t>(right)]));
          }
          // about 100 roundings of 6e-8 each, of sums of about 10
          ASSERT_NEAR(sums[at], sum, 1e-4) << rows << " rows: " << row << ", " << column;
        }
      }
    }
  }
}

TEST(BlockProduct, OfEachKernelOfF32IsTheDefinitions) {
  for (const auto& kernel : block_kernels<float>()) expect_products(kernel);
}

TEST(BlockProduct, OfEachKernelOfBf16IsTheDefinitions) {
  if (block_kernels<BFloat16>().empty()) GTEST_SKIP() << "needs AVX-512 BF16";
  for (const auto& kernel : block_kernels<BFloat16>()) expect_products(kernel);
}

}  // namespace
}  // namespace wisp
