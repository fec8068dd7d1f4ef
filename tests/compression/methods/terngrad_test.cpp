#include <gtest/gtest.h>

#include <cmath>

#include "compression/quantize/rounding.h"
#include "tests/support/error_of.h"
#include "tests/support/random_rounding.h"

namespace wisp {
namespace {

constexpr int64_t kTerngradNumel = 700;

/// Wen et al. 2017: clip to 2.5 sigma, s = max |g|, g~_i = s sign(g_i) b_i, P(b_i = 1) = |g_i| / s.
/// Numbers are multiples of 1/64, so that sums are exact in any order.
float terngrad_gradient(int64_t step, int rank, int64_t i) {
  return std::round(test_gradient(step, rank, i) * 2048.0f) / 64.0f;
}

float clipped_scale(int64_t step, int rank) {
  double sum = 0.0, squares = 0.0;
  float largest = 0.0f;
  for (int64_t i = 0; i < kTerngradNumel; ++i) {
    const float g = terngrad_gradient(step, rank, i);
    sum += static_cast<double>(g);
    squares += static_cast<double>(g) * static_cast<double>(g);
    largest = std::max(largest, std::fabs(g));
  }
  const double mean = sum / kTerngradNumel;
  const double bound = 2.5 * std::sqrt(squares / kTerngradNumel - mean * mean);
  return std::min(largest, static_cast<float>(bound));
}

void check_terngrad_model(bool shared) {
  constexpr int kWorkers = 3;
  const std::vector<Field> fields = layer_fields({kTerngradNumel});
  MethodRig rig(kWorkers, fields, [&] {
    return make_method("terngrad",
                       shared ? "compression.scaler = \"shared\"" : "compression.scaler = \"own\"");
  });
  for (int64_t step = 0; step < 50; ++step) {
    StepInfo info;
    info.step = step;
    std::vector<float> clip, scale;
    for (int rank = 0; rank < kWorkers; ++rank) {
      clip.push_back(clipped_scale(step, rank));
      for (int64_t i = 0; i < kTerngradNumel; ++i)
        rig.gradient(rank)[i] = terngrad_gradient(step, rank, i);
    }
    scale = clip;
    if (shared) scale.assign(kWorkers, *std::max_element(clip.begin(), clip.end()));
    std::vector<float> result(kTerngradNumel, 0.0f);
    for (size_t i = 0; i < kTerngradNumel; ++i) {
      int sum = 0;
      for (int rank = 0; rank < kWorkers; ++rank) {
        const auto w = static_cast<size_t>(rank);
        info.rank = rank;
        const auto per_unit = static_cast<float>(0x1p23 / static_cast<double>(scale[w])) * 0x1p-23f;
        const float most = std::min(1.0f, clip[w] * per_unit);
        const float g = terngrad_gradient(step, rank, static_cast<int64_t>(i)) * per_unit;
        const int trit = model_level(std::clamp(g, -most, most), dither_of(info, fields[0]),
                                     static_cast<int64_t>(i));
        sum += trit;
        if (!shared) result[i] += static_cast<float>(trit) * scale[w];
      }
      if (shared) result[i] = static_cast<float>(sum) * scale[0];
    }
    rig.step(info);
    for (int rank = 0; rank < kWorkers; ++rank)
      ASSERT_EQ(std::vector<float>(rig.gradient(rank), rig.gradient(rank) + kTerngradNumel),
                result);
  }
}

TEST(Terngrad, FollowsAScalarModelOfThePaper) {
  check_terngrad_model(true);
  check_terngrad_model(false);
}

TEST(Terngrad, IsUnbiasedWhereItDoesNotClip) {
  std::vector<float> x;
  for (int i = 0; i < 30; ++i) x.push_back(static_cast<float>(i % 9 - 4) * 0.25f);
  for (const char* scaler : {"own", "shared"}) {
    const RoundingErrors errors =
        check_unbiased("terngrad", concat("compression.scaler = \"", scaler, "\""), x,
                       std::vector<float>(30, 1.0f));
    EXPECT_LE(errors.ratio, (std::sqrt(30.0) - 1.0) / 2.0 + errors.slack);
  }
}

TEST(Terngrad, ClipsAtDeviations) {
  std::vector<float> x(100, 0.0f);
  x[7] = -10.0f;  // sigma = sqrt(1 - 0.01) = 0.995
  UnitRig rig(layer_fields({100}), make_method("terngrad", ""));
  std::copy(x.begin(), x.end(), rig.gradient());
  rig.decode({}, {rig.encode({})});
  EXPECT_FLOAT_EQ(rig.gradient()[7], -2.5f * std::sqrt(0.99f));
  UnitRig whole(layer_fields({100}), make_method("terngrad", "compression.clip = 0.0"));
  std::copy(x.begin(), x.end(), whole.gradient());
  whole.decode({}, {whole.encode({})});
  EXPECT_EQ(whole.gradient()[7], -10.0f);
  EXPECT_EQ(whole.gradient()[8], 0.0f);
}

TEST(Terngrad, HasTheDocumentedBytes) {
  UnitRig own(layer_fields({5}), make_method("terngrad", "compression.scaler = \"own\""));
  const std::vector<float> x = {1, -1, 0, 1, -1};
  std::copy(x.begin(), x.end(), own.gradient());
  EXPECT_EQ(hex(own.encode({})),
            "0000803f"
            "4d03");
  MethodRig shared(4, layer_fields({5}),
                   [] { return make_method("terngrad", "compression.scaler = \"shared\""); });
  for (int rank = 0; rank < 4; ++rank) std::copy(x.begin(), x.end(), shared.gradient(rank));
  shared.step({});
  EXPECT_EQ(hex(shared.sent(0, 0)), "0000803f");
  // lanes of 4 bits: 1 - (1 << 4) + (1 << 12) - (1 << 16)
  EXPECT_EQ(hex(shared.sent(0, 1)), "f10fffff");
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(shared.gradient(2)[i], 4.0f * x[i]);
  EXPECT_TRUE(own.compressor->traits().dense_1d);
}

TEST(Terngrad, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(error_of([] { make_method("terngrad", "compression.clip = -1.0"); }),
            "test.toml:1: compression.clip is -1, expected 0 or more");
  EXPECT_THROW(make_method("terngrad", "compression.rounding = \"nearest\""), Error);
  const std::vector<Field> fields = layer_fields({100});
  EXPECT_THROW(make_method("terngrad", "compression.feedback = \"ef\"")->state({fields, 100}, 1),
               Error);
}

}  // namespace
}  // namespace wisp
