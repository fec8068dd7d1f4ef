#include "compression/low_rank/orthonormal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/tensor/tensor.h"

namespace wisp {
namespace {

class Orthonormal : public testing::Test {
 protected:
  Tensor drawn(int64_t count, int64_t length, uint64_t id) {
    Tensor columns({count, length}, DType::f32);
    for (int64_t i = 0; i < columns.numel(); ++i)
      columns.data<float>()[i] = Philox(4, 0, id).nearly_normal(static_cast<uint64_t>(i));
    return columns;
  }
  void run(const Tensor& columns) {
    const Columns matrix{columns.data<float>(), columns.shape()[0], columns.shape()[1],
                         Philox(1, 2, 3), 100};
    orthonormalise(Stream::immediate(), &matrix, 1, columns.numel());
  }
  static double dot(const float* a, const float* b, int64_t n) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
  }
  void expect_orthonormal(const Tensor& columns) {
    const int64_t n = columns.shape()[1];
    for (int64_t a = 0; a < columns.shape()[0]; ++a)
      for (int64_t b = 0; b <= a; ++b)
        EXPECT_NEAR(dot(columns.data<float>() + a * n, columns.data<float>() + b * n, n), a == b,
                    1e-6)  // f32 rounding of numbers up to 1
            << a << " " << b;
  }
};

TEST_F(Orthonormal, KeepsTheSpanOfEachBeginning) {
  for (const int64_t length : {int64_t{5}, int64_t{37}, int64_t{20'000}}) {
    const Tensor before = drawn(5, length, 0);
    const Tensor columns = drawn(5, length, 0);
    run(columns);
    expect_orthonormal(columns);
    for (int64_t c = 0; c < 5; ++c) {
      // a column is the sum of its components along the first c + 1; its last component is positive
      const float* original = before.data<float>() + c * length;
      double square = 0.0;
      for (int64_t j = 0; j <= c; ++j) {
        const double along = dot(original, columns.data<float>() + j * length, length);
        square += along * along;
        if (j == c) {
          EXPECT_GT(along, 0.0);
        }
      }
      const double whole = dot(original, original, length);
      EXPECT_NEAR(square, whole, 1e-5 * whole);
    }
  }
}

TEST_F(Orthonormal, IsExactOfColumnsThatAreNearlyDependent) {
  const Tensor columns = drawn(3, 1000, 1);
  float* numbers = columns.data<float>();
  for (int64_t i = 0; i < 1000; ++i) {  // one pass would leave a thousandth of the other columns
    numbers[1000 + i] = numbers[i] + 1e-4f * numbers[1000 + i];
    numbers[2000 + i] = numbers[i] + 1e-4f * numbers[2000 + i];
  }
  run(columns);
  expect_orthonormal(columns);
}

TEST_F(Orthonormal, DrawsWhatIsNoDirection) {
  for (const float bad : {0.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const Tensor columns = drawn(4, 50, 2);
    float* numbers = columns.data<float>();
    std::fill_n(numbers + 50, 50, bad);                                    // column 1
    for (int64_t i = 0; i < 50; ++i) numbers[150 + i] = numbers[100 + i];  // column 3 is column 2
    run(columns);
    expect_orthonormal(columns);
  }
  const Tensor zeros({3, 3}, DType::f32);  // as many columns as dimensions
  run(zeros);
  expect_orthonormal(zeros);
}

TEST_F(Orthonormal, TakesNumbersOfAnySize) {
  for (const float size : {1e-40f, 1e-25f, 1e30f}) {
    const Tensor columns = drawn(3, 64, 3);
    for (int64_t i = 0; i < columns.numel(); ++i) columns.data<float>()[i] *= size;
    run(columns);
    expect_orthonormal(columns);
  }
  const Tensor largest({3, 64}, DType::f32);  // components along each other overflow a float
  std::fill_n(largest.data<float>(), largest.numel(), std::numeric_limits<float>::max());
  run(largest);
  expect_orthonormal(largest);
}

}  // namespace
}  // namespace wisp
