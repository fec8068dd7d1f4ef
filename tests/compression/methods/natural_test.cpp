#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compression/quantize/rounding.h"
#include "tests/support/error_of.h"
#include "tests/support/random_rounding.h"

namespace wisp {
namespace {

/// Horvath et al. 2019: 2^e (1 + f) becomes 2^(e + 1) with probability f.
float natural_model(float x, const Dither& dither, int64_t i) {
  if (x == 0.0f) return x;
  int exponent = 0;
  const float mantissa = std::frexp(std::fabs(x), &exponent);  // in [1/2, 1)
  const auto fraction = static_cast<uint32_t>((2.0f * mantissa - 1.0f) * 0x1p23f);
  // 23 drawn bits reach 2^23 - f with probability f / 2^23
  const bool up = fraction + (dither.bits(i) >> 9) >= 1u << 23;
  return std::copysign(std::ldexp(1.0f, exponent - 1 + (up ? 1 : 0)), x);
}

TEST(Natural, FollowsAScalarModelOfThePaper) {
  constexpr int64_t kNumel = 150;
  for (const char* bits : {"compression.bits = 9", "compression.bits = 8"}) {
    const std::vector<Field> fields = layer_fields({kNumel});
    MethodRig rig(3, fields, [&] { return make_method("natural", bits); });
    for (int64_t step = 0; step < 50; ++step) {
      StepInfo info;
      info.step = step;
      std::vector<float> sum(kNumel, 0.0f);
      for (int rank = 0; rank < 3; ++rank) {
        info.rank = rank;
        for (int64_t i = 0; i < kNumel; ++i) {
          rig.gradient(rank)[i] = test_gradient(step, rank, i);
          sum[static_cast<size_t>(i)] +=
              natural_model(test_gradient(step, rank, i), dither_of(info, fields[0]), i);
        }
      }
      rig.step(info);
      for (int rank = 0; rank < 3; ++rank)
        ASSERT_EQ(std::vector<float>(rig.gradient(rank), rig.gradient(rank) + kNumel), sum);
    }
  }
}

TEST(Natural, IsUnbiasedWithItsVariance) {
  const std::vector<float> x = {1.5f, -1.1f, 0.3f, 7.9f, 4.0f / 3.0f, -1.0f, 0.0f};
  const std::vector<float> gap = {1.0f, 1.0f, 0.25f, 4.0f, 1.0f, 1.0f, 0.0f};
  for (const char* bits : {"compression.bits = 9", "compression.bits = 8"}) {
    check_unbiased("natural", bits, x, gap);
    // f (1 - f) / (1 + f)² is largest at f = 1/3
    const RoundingErrors worst = check_unbiased(
        "natural", bits, std::vector<float>(20, 4.0f / 3.0f), std::vector<float>(20, 1.0f));
    EXPECT_NEAR(worst.ratio, 0.125, worst.slack);
  }
}

TEST(Natural, HasTheDocumentedBytes) {
  const std::vector<float> x = {1.0f, -2.0f, 0.0f, 0.5f};
  UnitRig nine(layer_fields({4}), make_method("natural", ""));
  std::copy(x.begin(), x.end(), nine.gradient());
  EXPECT_EQ(hex(nine.encode({})),
            "7f80007e"
            "02");
  UnitRig eight(layer_fields({4}), make_method("natural", "compression.bits = 8"));
  std::copy(x.begin(), x.end(), eight.gradient());
  EXPECT_EQ(hex(eight.encode({})), "6dee006c");
  for (UnitRig* rig : {&nine, &eight}) {
    rig->decode({}, {rig->encode({}), rig->encode({})});
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(rig->gradient()[i], 2.0f * x[i]);
  }
}

TEST(Natural, SendsNineBitsOrEight) {
  for (const auto& [bits, bytes] : std::vector<std::pair<int, int64_t>>{
           {9, 1000 + 125 + 7 + 1 + 1 + 1 + 65 + 9}, {8, 1000 + 7 + 1 + 65}}) {
    std::vector<Field> fields = layer_fields({1000, 7, 1});
    fields.push_back(joined_field({65}));
    fields.back().slices[0].offset = 2000;
    UnitRig rig(fields, make_method("natural", concat("compression.bits = ", bits)));
    const Message message = rig.compressor->message(rig.unit.spec, {}, 0);
    EXPECT_EQ(message.kind, Collective::all_gather);
    EXPECT_EQ(message.bytes, bytes);
    EXPECT_FALSE(message.variable);
    EXPECT_FALSE(rig.compressor->traits().dense_1d);
  }
}

TEST(Natural, SaysWhatSaturates) {
  const float largest = std::numeric_limits<float>::max();
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(decoded("natural", "", {largest, -largest, 0.0f, 0x1p-126f}),
            (std::vector<float>{0x1p127f, -0x1p127f, 0.0f, 0x1p-126f}));
  EXPECT_EQ(decoded("natural", "compression.bits = 8",
                    {largest, -0x1p19f, 0x1p18f, 0x1p-108f, 0x1p-109f, least, 0.0f}),
            (std::vector<float>{0x1p18f, -0x1p18f, 0x1p18f, 0x1p-108f, 0.0f, 0.0f, 0.0f}));
}

TEST(Natural, RoundsDenormalsWithoutBias) {
  check_unbiased("natural", "", std::vector<float>(8, 0x1p-127f), std::vector<float>(8, 0x1p-126f));
}

TEST(Natural, AnyBytesAreFiniteNumbers) {
  UnitRig rig(layer_fields({8}), make_method("natural", ""));
  rig.decode({}, {PayloadBytes(9, std::byte{0xff})});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(rig.gradient()[i], -0x1p127f);
}

TEST(Natural, FeedsBackWhatItRoundedOff) {
  for (const char* bits : {"9", "8"}) {
    UnitRig rig(
        layer_fields({200}),
        make_method("natural", concat("compression.feedback = \"ef\"\ncompression.bits = ", bits)));
    std::vector<double> given(200, 0.0), sent(200, 0.0);
    for (int64_t step = 0; step < 50; ++step) {
      StepInfo info;
      info.step = step;
      for (size_t i = 0; i < given.size(); ++i) {
        rig.gradient()[i] = test_gradient(step, 0, static_cast<int64_t>(i));
        given[i] += static_cast<double>(rig.gradient()[i]);
      }
      rig.decode(info, {rig.encode(info)});
      for (size_t i = 0; i < given.size(); ++i) sent[i] += static_cast<double>(rig.gradient()[i]);
    }
    for (size_t i = 0; i < given.size(); ++i)  // f32 rounding of 50 residuals below 0.2
      EXPECT_NEAR(sent[i] + static_cast<double>(rig.residual()[i]), given[i], 1e-6);
  }
}

TEST(Natural, DependsOnPositionsInTheFieldAndOnTheRank) {
  UnitRig whole(layer_fields({200}), make_method("natural", ""));
  UnitRig cut({joined_field({70, 1, 129})}, make_method("natural", ""));
  std::vector<float> expected;
  for (int rank = 0; rank < 2; ++rank) {
    StepInfo info;
    info.rank = rank;
    int64_t position = 0;
    for (const Slice& slice : cut.fields[0].slices) {
      for (int64_t i = 0; i < slice.numel; ++i, ++position)
        cut.gradient()[slice.offset + i] = whole.gradient()[position] = 1.5f;
    }
    whole.decode(info, {whole.encode(info)});
    cut.decode(info, {cut.encode(info)});
    position = 0;
    for (const Slice& slice : cut.fields[0].slices) {
      for (int64_t i = 0; i < slice.numel; ++i, ++position)
        EXPECT_EQ(cut.gradient()[slice.offset + i], whole.gradient()[position]);
    }
    const std::vector<float> now(whole.gradient(), whole.gradient() + 200);
    EXPECT_NE(now, expected);
    expected = now;
  }
}

TEST(Natural, SendsZerosIfTheGradientIsNotFinite) {
  UnitRig rig(layer_fields({70}), make_method("natural", "compression.feedback = \"ef\""));
  rig.residual()[3] = 0.75f;
  rig.gradient()[3] = std::nanf("");
  rig.unit.finite = false;
  rig.decode({}, {rig.encode({})});
  for (int i = 0; i < 70; ++i) EXPECT_EQ(rig.gradient()[i], 0.0f);
  EXPECT_EQ(rig.residual()[3], 0.75f);
}

TEST(Natural, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(error_of([] { make_method("natural", "compression.bits = 7"); }),
            "test.toml:1: compression.bits is 7, expected 8 or 9");
  UnitRig rig(layer_fields({3}), make_method("natural", ""));
  EXPECT_EQ(error_of([&] { rig.decode({}, {PayloadBytes(3)}); }),
            "natural: the payload of rank 0 has 3 bytes, expected 4");
}

}  // namespace
}  // namespace wisp
