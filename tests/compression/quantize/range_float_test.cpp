#include "compression/quantize/range_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace wisp {
namespace {

struct Format {
  int bits, mantissa;
  float max;
};

const Format kFormats[] = {{2, 0, 1.0f},      {4, 1, 3.0f},     {8, 1, 0.7f},    {8, 3, 1e30f},
                           {10, 3, 6.02e-3f}, {10, 4, 1.0f},    {10, 5, 123.4f}, {12, 6, 1e-20f},
                           {16, 9, 0.31f},    {16, 8, 3.3e38f}, {10, 3, 1e-41f}, {16, 10, 0.0f}};

/// The codes of every format are the numbers of m mantissa bits from eps to the largest, in order.
/// The nearest code to each such number is its own.
TEST(RangeFloat, UsesAllItsCodesInOrder) {
  for (const Format& f : kFormats) {
    SCOPED_TRACE(testing::Message() << f.bits << " bits, " << f.mantissa << ", max " << f.max);
    const RangeFloat format(f.bits, f.mantissa, f.max);
    const uint32_t sign = 1u << (f.bits - 1);
    if (f.max > 1e-15f) {  // a smaller range may run out of f32 numbers
      EXPECT_EQ(format.codes(), sign - 1);
    }
    EXPECT_EQ(format.decode(0), 0.0f);
    EXPECT_EQ(format.decode(sign), 0.0f);
    EXPECT_EQ(format.decode(1), format.eps());
    EXPECT_EQ(format.decode(format.codes()), format.largest());
    float before = 0.0f;
    for (uint32_t code = 1; code <= format.codes(); ++code) {
      const float value = format.decode(code);
      EXPECT_GT(value, before);
      EXPECT_EQ(float_bits(value) & ((1u << (23 - f.mantissa)) - 1), 0u);
      EXPECT_EQ(format.encode(value), code);  // idempotent
      EXPECT_EQ(format.decode(sign | code), -value);
      EXPECT_EQ(format.encode(-value), sign | code);
      before = value;
    }
    for (uint32_t code = format.codes(); code < sign; ++code)
      EXPECT_EQ(format.decode(code), format.largest());
  }
}

TEST(RangeFloat, RoundsToTheNearestNumber) {
  for (const Format& f : kFormats) {
    SCOPED_TRACE(testing::Message() << f.bits << " bits, " << f.mantissa << ", max " << f.max);
    const RangeFloat format(f.bits, f.mantissa, f.max);
    const double eps = static_cast<double>(format.eps());
    const double relative = std::ldexp(1.0, -(f.mantissa + 1));
    float before = 0.0f;
    // magnitudes of all sizes, up to beyond the range
    for (uint32_t bits = 0; bits < float_bits(std::max(f.max, 1e-38f)) + (1u << 24); bits += 9973) {
      const float x = float_from_bits(bits);
      if (!std::isfinite(x)) break;
      const float value = format.decode(format.encode(x));
      EXPECT_GE(value, before);  // monotone
      EXPECT_EQ(format.decode(format.encode(-x)), -value);
      EXPECT_EQ(format.decode(format.encode(value)), value);
      before = value;
      const double off = std::fabs(static_cast<double>(value) - static_cast<double>(x));
      if (x > format.largest()) {
        EXPECT_EQ(value, format.largest());
      } else if (static_cast<double>(x) < eps) {
        EXPECT_LE(off, eps / 2);
      } else if (std::fpclassify(x) == FP_NORMAL) {  // subnormals have fewer bits
        EXPECT_LE(off, relative * static_cast<double>(x));
      }
    }
  }
}

TEST(RangeFloat, FitsEpsToTheRange) {
  const RangeFloat format(10, 3, 1.0f);  // 511 numbers: 1, and 8 in each octave below
  EXPECT_EQ(format.decode(511), 1.0f);
  EXPECT_EQ(format.decode(510), 0.9375f);
  EXPECT_EQ(format.decode(503), 0.5f);
  EXPECT_EQ(format.eps(), std::ldexp(1.25f, -64));
  const RangeFloat narrow(6, 2, 1.0f);  // 31 numbers: 1, and 4 in each octave below
  EXPECT_EQ(narrow.eps(), std::ldexp(1.5f, -8));
  EXPECT_EQ(narrow.encode(0.6f), 28u);  // 0.625
  EXPECT_EQ(narrow.encode(-0.6f), 32u + 28u);
  EXPECT_EQ(RangeFloat(6, 2, 2.0f).eps(), 2.0f * narrow.eps());
}

TEST(RangeFloat, IsF32AtItsWidest) {
  for (const float max : {1.0f, 1e-40f, std::numeric_limits<float>::max()}) {
    const RangeFloat format(32, 23, max);
    EXPECT_EQ(format.largest(), max);
    for (const float part : {1.0f, 0.123456789f, 1e-7f, 0.0f}) {
      EXPECT_EQ(format.decode(format.encode(max * part)), max * part);
      EXPECT_EQ(format.decode(format.encode(-max * part)), -max * part);
    }
  }
}

TEST(RangeFloat, LetsNothingInfiniteTravel) {
  const RangeFloat format(10, 3, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(format.largest()));
  EXPECT_EQ(format.decode(format.encode(std::numeric_limits<float>::infinity())), format.largest());
  EXPECT_EQ(format.decode(format.encode(-std::nanf(""))), -format.largest());
}

}  // namespace
}  // namespace wisp
