#include "core/train/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

double squares_of(const Tensor& x) {
  TestContext test;
  double result = -1.0;
  const Ranges::Range all{0, x.numel(), 0};
  sums_of_squares(test.stream, x, Ranges(test.stream, test.context.pool, {&all, 1}, sizeof result),
                  &result);
  return result;
}

/// Ranges with gaps between them, one of them empty, whose results have another order.
TEST(Norm, SumsEachRangeByItself) {
  TestContext test;
  const Tensor x = random_tensor({20'000}, 5, DType::f32);
  const Ranges::Range ranges[] = {{0, 9000, 2}, {9100, 0, 0}, {9200, 10'800, 1}};
  double sums[3] = {-1.0, -1.0, -1.0};
  sums_of_squares(test.stream, x, Ranges(test.stream, test.context.pool, ranges, sizeof sums[0]),
                  sums);
  EXPECT_EQ(sums[0], 0.0);
  EXPECT_EQ(sums[1], squares_of(x.slice(9200, {10'800})));
  EXPECT_EQ(sums[2], squares_of(x.slice(0, {9000})));
}

TEST(Norm, ScalesEachRangeByItsFactor) {
  TestContext test;
  const Ranges::Range ranges[] = {{0, 9000, 2}, {9000, 0, 0}, {9200, 300'000, 1}, {309'200, 3, 3}};
  const Ranges table(test.stream, test.context.pool, ranges, sizeof(double));
  const double factors[] = {7.0, 0.5, 3.0, 1.0};
  for (const bool squared : {false, true}) {
    const Tensor x = full({309'300}, 1.0, DType::f32);
    scale(test.stream, x, table, factors, squared);
    for (int64_t i = 0; i < x.numel(); ++i) {
      double expected = 1.0;
      if (i < 9000) expected = 3.0;
      if (9200 <= i && i < 309'200) expected = 0.5;
      ASSERT_EQ(x.data<float>()[i], squared ? expected * expected : expected) << i;
    }
  }
}

TEST(Norm, SumsSquaresInDouble) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int64_t n : {1, 15, 17, 5000, 100'003}) {
      const Tensor x = random_tensor({n}, 3, dtype);
      double expected = 0.0;
      for (const double value : values(x)) expected += value * value;
      // n additions of positive doubles, in two different orders
      EXPECT_NEAR(squares_of(x), expected, expected * 1e-15 * static_cast<double>(n));
    }
  }
  EXPECT_EQ(squares_of(Tensor({0}, DType::f32)), 0.0);
}

TEST(Norm, IsFiniteIfAndOnlyIfEveryElementIs) {
  const Tensor huge = full({1000}, std::numeric_limits<float>::max(), DType::f32);
  EXPECT_TRUE(std::isfinite(squares_of(huge)));
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (const int64_t at : {0, 500, 999}) {
      const Tensor x = full({1000}, 1.0, DType::f32);
      x.data<float>()[at] = bad;
      EXPECT_FALSE(std::isfinite(squares_of(x)));
    }
  }
}

TEST(Norm, ScalesAndClearsInPlace) {
  TestContext test;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = tensor({3}, {1.0, -2.0, 4.0}, dtype);
    scale(test.stream, x, 0.5);
    EXPECT_EQ(values(x), (std::vector<double>{0.5, -1.0, 2.0}));
    fill_zero(test.stream, x);
    EXPECT_EQ(values(x), (std::vector<double>(3, 0.0)));
  }
}

}  // namespace
}  // namespace wisp
