#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

const std::vector<int64_t> kSizes = {1000, 7, 64};

TEST(Cast, HalvesTheBytesAndRoundsToNearest) {
  // A result has half a unit in the last place of error: 2^-11 (f16), 2^-8 (bf16) of the value.
  for (const auto& [name, error] :
       std::vector<std::pair<std::string, float>>{{"fp16", 0x1p-11f}, {"bf16", 0x1p-8f}}) {
    UnitRig rig(layer_fields(kSizes), make_method(name, ""));
    const Philox random(1, 0, 0);
    std::vector<float> original;
    for (int64_t i = 0; i < rig.unit.gradient.numel(); ++i) {
      rig.gradient()[i] = random.uniform(static_cast<uint64_t>(i)) + 0.5f;
      original.push_back(rig.gradient()[i]);
    }
    const Message message = rig.compressor->message(rig.unit.spec, {}, 0);
    EXPECT_EQ(message.kind, Collective::all_reduce);
    EXPECT_EQ(message.dtype, name == "fp16" ? DType::f16 : DType::bf16);
    EXPECT_EQ(message.bytes, 2 * 1071);
    EXPECT_FALSE(message.variable);
    rig.decode({}, {rig.encode({})});
    for (const Field& field : rig.fields) {
      for (int64_t i = 0; i < field.numel; ++i) {
        const int64_t at = field.slices[0].offset + i;
        const float exact = original[static_cast<size_t>(at)];
        ASSERT_NEAR(rig.gradient()[at], exact, error * exact) << name << ", " << at;
      }
    }
  }
}

TEST(Cast, SaturatesInsteadOfSendingInfinity) {
  UnitRig rig(layer_fields({2}), make_method("fp16", ""));
  rig.gradient()[0] = 1e9f;
  rig.gradient()[1] = -1e9f;
  rig.decode({}, {rig.encode({})});
  EXPECT_EQ(rig.gradient()[0], 65504.0f);
  EXPECT_EQ(rig.gradient()[1], -65504.0f);
}

TEST(Cast, CanFeedBackItsRoundingError) {
  UnitRig rig(layer_fields({1}), make_method("bf16", "compression.feedback = \"ef\""));
  double sent = 0.0;
  for (int64_t step = 0; step < 100; ++step) {
    rig.gradient()[0] = 1.001f;
    rig.decode({}, {rig.encode({})});
    sent += static_cast<double>(rig.gradient()[0]);
  }
  // f32 rounding of 100 residuals below 2^-7
  EXPECT_NEAR(sent + static_cast<double>(rig.residual()[0]), 100.0 * static_cast<double>(1.001f),
              1e-5);
}

TEST(Cast, SendsZerosIfTheGradientIsNotFinite) {
  UnitRig rig(layer_fields({3}), make_method("bf16", ""));
  for (int64_t i = 0; i < 3; ++i) rig.gradient()[i] = NAN;
  rig.unit.finite = false;
  rig.decode({}, {rig.encode({})});
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(rig.gradient()[i], 0.0f);
}

TEST(Cast, RefusesAPayloadOfTheWrongSize) {
  UnitRig rig(layer_fields({3}), make_method("fp16", ""));
  EXPECT_EQ(error_of([&] { rig.decode({}, {PayloadBytes(4)}); }),
            "cast: the payload of rank 0 has 4 bytes, expected 6");
}

}  // namespace
}  // namespace wisp
