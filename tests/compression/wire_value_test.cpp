#include "compression/wire_value.h"

#include <gtest/gtest.h>

#include <cmath>

namespace wisp {
namespace {

float natural(float value) { return static_cast<float>(to_wire<Natural>(value)); }

TEST(WireValue, RoundsToTheNearestPowerOfTwo) {
  EXPECT_EQ(natural(1.0f), 1.0f);
  EXPECT_EQ(natural(-1.49f), -1.0f);
  EXPECT_EQ(natural(1.5f), 2.0f) << "a tie goes up";
  EXPECT_EQ(natural(-3.1f), -4.0f);
  EXPECT_EQ(natural(0.0f), 0.0f);
  EXPECT_EQ(natural(0x1p-126f), 0x1p-126f);
  EXPECT_EQ(natural(0x1p-127f), 0x1p-126f);
  EXPECT_EQ(natural(0x1p-128f), 0.0f);
  EXPECT_EQ(natural(3.4e38f), 0x1p127f);
  EXPECT_EQ(natural(-INFINITY), -0x1p127f);
  EXPECT_EQ(to_wire<Natural>(-8.0f).bits, 0x100u | 130u);
}

/// A residual keeps the rest of a natural value without rounding.
TEST(WireValue, LeavesARestThatAFloatHolds) {
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 9'999'991u / 37u) {
    const float value = float_from_bits(bits);
    const double rest = static_cast<double>(value) - static_cast<double>(natural(value));
    ASSERT_EQ(static_cast<double>(value - natural(value)), rest) << value;
    if (value >= 0x1p-126f && value < 0x1p127f) {
      ASSERT_LE(std::fabs(rest), static_cast<double>(value) / 3.0) << value;
    }
  }
}

TEST(WireValue, RoundsToHalfAsHalfDoes) {
  for (uint64_t bits = 0; bits < 0x477ff000u; bits += 1021) {  // until rounding to infinity
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const float value = float_from_bits(sign | static_cast<uint32_t>(bits));
      ASSERT_EQ(to_wire<Half>(value).bits, Half(value).bits) << value;
    }
  }
  EXPECT_EQ(to_wire<Half>(NAN).bits & 0x7fffu, 0x7e00u);
  EXPECT_EQ(static_cast<float>(to_wire<Half>(-INFINITY)), -65504.0f);
}

TEST(WireValue, KnowsTheLeastMagnitudeThatIsNotZero) {
  for (const WireFormat format :
       {WireFormat::f32, WireFormat::f16, WireFormat::bf16, WireFormat::natural}) {
    dispatch_wire(format, [&]<class Value>(Value) {
      const auto travels = [](uint32_t bits) {
        return static_cast<float>(to_wire<Value>(float_from_bits(bits)));
      };
      EXPECT_EQ(travels(least_magnitude(format) - 1), 0.0f) << name_of(format);
      EXPECT_GT(travels(least_magnitude(format)), 0.0f) << name_of(format);
    });
  }
}

TEST(WireValue, NoInfinityTravels) {
  const float largest = float_from_bits(0x7f7fffffu);
  EXPECT_EQ(static_cast<float>(to_wire<BFloat16>(largest)), float_from_bits(0x7f7f0000u));
  EXPECT_EQ(static_cast<float>(to_wire<BFloat16>(-largest)), float_from_bits(0xff7f0000u));
  EXPECT_EQ(static_cast<float>(to_wire<BFloat16>(float_from_bits(0x7f7f7fffu))),
            float_from_bits(0x7f7f0000u));
  EXPECT_EQ(static_cast<float>(to_wire<Half>(1e6f)), 65504.0f);
}

}  // namespace
}  // namespace wisp
