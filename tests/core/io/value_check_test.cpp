#include "core/io/value_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

/// The refusal of a tensor whose last of three elements is `value`; the others are 1.
template <class T>
std::string refusal(const ValueCheck& check, DType dtype, T value) {
  const Tensor tensor({3}, dtype);
  for (int i = 0; i < 3; ++i) tensor.data<T>()[i] = i == 2 ? value : T{1};
  return error_of([&] { check(tensor); });
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

TEST(ValueCheck, CountsAreNeitherNegativeNorHuge) {
  const auto of = [](int64_t value) { return refusal(check_counts, DType::i64, value); };
  EXPECT_EQ(of(0), "no error");
  EXPECT_EQ(of(int64_t{1} << 60), "no error");
  EXPECT_EQ(of(-1), "element 2 is -1, expected 0 to 2^60");
  for (const int64_t value : {(int64_t{1} << 60) + 1, INT64_MAX, INT64_MIN})
    EXPECT_NE(of(value), "no error") << value;
}

TEST(ValueCheck, BoundedNumbersAreFiniteAndLeaveRoomForSums) {
  EXPECT_EQ(refusal(check_bounded, DType::f32, -0x1p110f), "no error");
  EXPECT_EQ(refusal(check_bounded, DType::f64, 0x1p110), "no error");
  EXPECT_EQ(refusal(check_bounded, DType::f32, std::nanf("")),
            "element 2 is nan, expected a number of at most 2^110 in magnitude");
  for (const double value : {0x1p111, -0x1p111, kInfinity, -kInfinity, kNaN}) {
    EXPECT_NE(refusal(check_bounded, DType::f64, value), "no error") << value;
    EXPECT_NE(refusal(check_bounded, DType::f32, static_cast<float>(value)), "no error") << value;
  }
}

TEST(ValueCheck, NumbersThatAreNotNegativeAreNumbers) {
  for (const double value : {0.0, 1e300, kInfinity})
    EXPECT_EQ(refusal(check_not_negative, DType::f64, value), "no error") << value;
  EXPECT_EQ(refusal(check_not_negative, DType::f64, -0.5), "element 2 is -0.5, expected 0 or more");
  for (const float value : {-1e-30f, std::nanf(""), -std::numeric_limits<float>::infinity()})
    EXPECT_NE(refusal(check_not_negative, DType::f32, value), "no error") << value;
}

template <class T>
int64_t nonfinite(DType dtype) {
  const Tensor tensor({4}, dtype);
  const float values[] = {std::nanf(""), 1.0f, -std::numeric_limits<float>::infinity(), 0.0f};
  for (int i = 0; i < 4; ++i) tensor.data<T>()[i] = T(values[i]);
  return count_nonfinite(tensor);
}

TEST(ValueCheck, CountsWhatIsNotFiniteInEveryType) {
  EXPECT_EQ(nonfinite<float>(DType::f32), 2);
  EXPECT_EQ(nonfinite<double>(DType::f64), 2);
  EXPECT_EQ(nonfinite<Half>(DType::f16), 2);
  EXPECT_EQ(nonfinite<BFloat16>(DType::bf16), 2);
  const Tensor large({1}, DType::f64);
  *large.data<double>() = 1e300;
  EXPECT_EQ(count_nonfinite(large), 0);
  const Tensor whole({1}, DType::i64);
  *whole.data<int64_t>() = -1;
  EXPECT_EQ(count_nonfinite(whole), 0);
}

}  // namespace
}  // namespace wisp
