#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/scalar_run.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

std::unique_ptr<Compressor> ef_signsgd() { return make_method("ef_signsgd", ""); }

/// Karimireddy et al. 2019 on one field: p = e + g; D = mean |p| sgn(p); e = p - D.
TEST(EfSign, FollowsAScalarModelOfThePaper) {
  constexpr int64_t kNumel = 333;
  MethodRig rig(3, layer_fields({kNumel}), ef_signsgd);
  std::vector<Floats> residual(3, Floats(kNumel, 0.0f));
  follow(rig, kNumel, 50, 1.0, [&](int64_t, const std::vector<Floats>& gradients) {
    Floats sum(kNumel, 0.0f);
    for (size_t rank = 0; rank < 3; ++rank) {
      Floats& e = residual[rank];
      double magnitudes = 0.0;
      for (size_t i = 0; i < kNumel; ++i) {
        e[i] += gradients[rank][i];
        magnitudes += std::fabs(static_cast<double>(e[i]));
      }
      const auto scale = static_cast<float>(magnitudes / kNumel);
      for (size_t i = 0; i < kNumel; ++i) {
        const float sent = e[i] >= 0.0f ? scale : -scale;
        e[i] -= sent;
        sum[i] += sent;
      }
    }
    return sum;
  });
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(values_of(rig.state(rank, "residual").data<float>(), kNumel),
              residual[static_cast<size_t>(rank)]);
}

TEST(EfSign, SendsAScaleAndABitPerElement) {
  MethodRig rig(1, layer_fields({9, 1, 64}), ef_signsgd);
  const Floats g{1, -2, 3, 0, -0.0f, 2, -3, -1, 4};
  std::copy(g.begin(), g.end(), rig.gradient(0));
  rig.step(step_info(0));
  const std::vector<std::byte>& sent = rig.sent(0, 0);
  ASSERT_EQ(sent.size(), 3u * 4 + 2 + 1 + 8);
  float scale = 0.0f;
  std::memcpy(&scale, sent.data(), 4);
  EXPECT_EQ(scale, 16.0f / 9.0f);
  EXPECT_EQ(sent[12], std::byte{0b00111101});  // element 0 is the lowest bit; zeros count as +
  EXPECT_EQ(sent[13], std::byte{0b1});
  EXPECT_EQ(rig.gradient(0)[1], -16.0f / 9.0f);
}

TEST(EfSign, TakesOneScaleOverTheSlicesOfAField) {
  MethodRig rig(1, {joined_field({70, 3})}, ef_signsgd);
  for (int64_t i = 0; i < 76; ++i) rig.gradient(0)[i] = i < 70 ? 1.0f : -8.0f;
  rig.step(step_info(0));
  const float mean = (70.0f + 3 * 8.0f) / 73.0f;
  EXPECT_EQ(rig.gradient(0)[0], mean);
  EXPECT_EQ(rig.gradient(0)[75], -mean);
  EXPECT_EQ(rig.gradient(0)[71], -8.0f);  // padding is untouched
}

TEST(EfSign, RefusesAPayloadOfAnotherSize) {
  UnitRig rig(layer_fields({100}), ef_signsgd());
  EXPECT_EQ(error_of([&] { rig.decode({}, {PayloadBytes(16)}); }),
            "ef_signsgd: the payload of rank 0 has 16 bytes, expected 17");
}

}  // namespace
}  // namespace wisp
