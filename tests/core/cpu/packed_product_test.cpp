// Tests of products larger than the part that is packed at once, against their definition.
#include "core/cpu/packed_product.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <vector>

#include "core/backend.h"
#include "tests/support/tensors.h"

namespace wisp {
namespace {

struct Product {
  int64_t m, n, k;
  bool add = false;
};

/// multiply() packs 768 elements of the depth (twice as many in bf16) and about 160 rows at once.
/// No size is a multiple of the kernels' 32, 24 or 6 rows, 16 columns or 2 elements.
const Product kCases[] = {
    {331, 37, 1601}, {331, 37, 1601, true}, {5, 33, 3203}, {163, 7, 769, true}};

/// C (m, n) with rows `stride` apart: the product of A (m, k) and an f32 B stored by columns.
template <class T>
std::vector<float> multiplied(const Product& c, const Tensor& a, const Tensor& b,
                              const Tensor& before, int64_t stride, int threads) {
  const int threads_before = omp_get_max_threads();
  omp_set_num_threads(threads);
  std::vector<float> result(before.data<float>(), before.data<float>() + before.numel());
  std::vector<T> scratch(static_cast<size_t>(product_scratch<T>(c.m, c.n, c.k)));
  multiply(c.m, c.n, c.k, Strided<T>{a.data<T>(), c.k, 1}, Strided<float>{b.data<float>(), 1, c.k},
           result.data(), stride, c.add, scratch.data());
  omp_set_num_threads(threads_before);
  return result;
}

template <class T>
void expect_product(const Product& c) {
  SCOPED_TRACE(concat(c.m, " x ", c.k, " · ", c.k, " x ", c.n, c.add ? ", added" : ""));
  const int64_t stride = c.n + 3;
  const Tensor a = random_tensor({c.m, c.k}, 1, dtype_of<T>::value);
  const Tensor b = random_tensor({c.n, c.k}, 2, DType::f32);
  const Tensor before = random_tensor({c.m, stride}, 3, DType::f32);
  const std::vector<float> found = multiplied<T>(c, a, b, before, stride, 1);
  EXPECT_EQ(found, multiplied<T>(c, a, b, before, stride, 3)) << "bits depend on threads";
  const std::vector<double> left = values(a), exact = values(b),
                            right = values(tensor({c.n, c.k}, exact, dtype_of<T>::value));
  for (int64_t row = 0; row < c.m; ++row) {
    for (int64_t column = 0; column < stride; ++column) {
      const auto at = static_cast<size_t>(row * stride + column);
      const double old = before.data<float>()[at];
      if (column >= c.n) {
        ASSERT_EQ(found[at], before.data<float>()[at]) << row << ", " << column << " is no element";
        continue;
      }
      double sum = c.add ? old : 0.0, size = 1.0;
      for (int64_t p = 0; p < c.k; ++p) {
        const double product =
            left[static_cast<size_t>(row * c.k + p)] * right[static_cast<size_t>(column * c.k + p)];
        sum += product;
        size += std::abs(product);
      }
      // Thousands of roundings of 6e-8 leave 4e-6 of the products' magnitudes. A missing product
      // would leave 3e-4 on average.
      ASSERT_NEAR(found[at], sum, 1e-5 * size) << row << ", " << column;
    }
  }
}

TEST(PackedProduct, OfF32IsTheDefinitionsBeyondWhatIsPackedAtOnce) {
  for (const Product& c : kCases) expect_product<float>(c);
}

TEST(PackedProduct, OfBf16IsTheDefinitionsBeyondWhatIsPackedAtOnce) {
  const std::string missing = missing_for(DType::bf16);
  if (!missing.empty()) GTEST_SKIP() << "needs " << missing;
  for (const Product& c : kCases) expect_product<BFloat16>(c);
}

}  // namespace
}  // namespace wisp
