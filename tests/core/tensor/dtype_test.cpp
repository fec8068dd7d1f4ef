#include "core/tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace wisp {
namespace {

/// The number that `bits` stand for, from the definition of the format.
double meaning(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  const int implied = exponent ? 1 << fraction_bits : 0;
  return sign * std::ldexp(implied + fraction, std::max(exponent, 1) - bias - fraction_bits);
}

template <class T>
struct Format;
template <>
struct Format<Half> {
  static constexpr int exponent_bits = 5, fraction_bits = 10;
};
template <>
struct Format<BFloat16> {
  static constexpr int exponent_bits = 8, fraction_bits = 7;
};

template <class T>
class DTypeFloat16 : public testing::Test {
 protected:
  static double value(int bits) {
    return meaning(static_cast<uint16_t>(bits), Format<T>::exponent_bits, Format<T>::fraction_bits);
  }
  static constexpr int kInfinity = ((1 << Format<T>::exponent_bits) - 1)
                                   << Format<T>::fraction_bits;
};
using Types = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(DTypeFloat16, Types);

TYPED_TEST(DTypeFloat16, EveryValueConvertsToFloatAndBack) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    TypeParam number;
    number.bits = static_cast<uint16_t>(bits);
    const double expected = this->value(bits);
    const float found = static_cast<float>(number);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(found)))) << bits;
    } else {
      ASSERT_EQ(found, expected) << bits;
      ASSERT_EQ(std::signbit(found), bits >> 15) << bits;
      ASSERT_EQ(TypeParam(found).bits, bits);
    }
  }
}

TYPED_TEST(DTypeFloat16, RoundsToNearestAndTiesToEven) {
  for (int bits = 0; bits + 1 < this->kInfinity; ++bits) {
    // the halfway point of neighbours is a float in both formats
    const auto halfway = static_cast<float>((this->value(bits) + this->value(bits + 1)) / 2);
    const int even = bits + (bits & 1);
    ASSERT_EQ(TypeParam(halfway).bits, even) << bits;
    ASSERT_EQ(TypeParam(-halfway).bits, even | 0x8000) << bits;
    ASSERT_EQ(TypeParam(std::nextafter(halfway, 0.0f)).bits, bits) << bits;
    ASSERT_EQ(TypeParam(std::nextafter(halfway, INFINITY)).bits, bits + 1) << bits;
  }
}

TYPED_TEST(DTypeFloat16, OverflowsToInfinityFromHalfAStepAboveTheLargest) {
  const double largest = this->value(this->kInfinity - 1);
  const double step = largest - this->value(this->kInfinity - 2);
  const auto border = static_cast<float>(largest + step / 2);
  EXPECT_EQ(TypeParam(border).bits, this->kInfinity);
  EXPECT_EQ(TypeParam(std::nextafter(border, 0.0f)).bits, this->kInfinity - 1);
  EXPECT_EQ(TypeParam(-border).bits, this->kInfinity | 0x8000);
  EXPECT_EQ(TypeParam(INFINITY).bits, this->kInfinity);
}

TEST(DType, SizesNamesAndDispatch) {
  EXPECT_EQ(size_of(DType::bf16), 2);
  EXPECT_EQ(size_of(DType::i64), 8);
  EXPECT_STREQ(name_of(DType::f16), "f16");
  EXPECT_EQ(dispatch_float(DType::f64, "test", [](auto zero) { return sizeof zero; }), 8u);
  EXPECT_THROW(dispatch_float(DType::i32, "test", [](auto) {}), Error);
  EXPECT_THROW(dispatch_float(DType::bf16, "test", [](auto) {}), Error);
  EXPECT_EQ(dispatch_activation(DType::bf16, "test", [](auto zero) { return sizeof zero; }), 2u);
  EXPECT_THROW(dispatch_activation(DType::f16, "test", [](auto) {}), Error);
}

TEST(DType, ActivationsHaveAWideType) {
  EXPECT_EQ(wide_of(DType::bf16), DType::f32);
  EXPECT_EQ(wide_of(DType::f64), DType::f64);
  EXPECT_TRUE((std::is_same_v<Wide<BFloat16>, float>));
  EXPECT_TRUE((std::is_same_v<Wide<double>, double>));
  BFloat16 rounded;
  store(&rounded, 1.0f + 0x1p-8f);  // half way between two numbers, so to even
  EXPECT_EQ(wide(rounded), 1.0f);
  store(&rounded, 1.0f + 0x1p-8f + 0x1p-20f);
  EXPECT_EQ(wide(rounded), 1.0f + 0x1p-7f);
}

}  // namespace
}  // namespace wisp
