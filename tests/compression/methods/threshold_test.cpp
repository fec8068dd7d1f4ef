#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/method_rig.h"
#include "tests/support/step_info.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// a = e + g; magnitudes of at least tau travel; e = the rest.
TEST(Threshold, FollowsAScalarModel) {
  constexpr int64_t kNumel = 6000;
  const float tau = 1.5f;
  MethodRig rig(3, layer_fields({kNumel}),
                [] { return make_method("threshold", "compression.threshold = 1.5"); });
  std::vector<std::vector<float>> residual(3, std::vector<float>(kNumel, 0.0f));
  int64_t least = kNumel, most = 0;
  for (int64_t step = 0; step < 50; ++step) {
    std::vector<float> sum(kNumel, 0.0f);
    for (int rank = 0; rank < 3; ++rank) {
      std::vector<float>& e = residual[static_cast<size_t>(rank)];
      const Philox noise(2, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
      int64_t passed = 0;
      for (size_t i = 0; i < kNumel; ++i) {
        const float g = noise.uniform(i) - 0.5f;
        rig.gradient(rank)[i] = g;
        e[i] += g;
        if (std::fabs(e[i]) < tau) continue;
        ++passed;
        sum[i] += e[i];
        e[i] = 0.0f;
      }
      least = std::min(least, passed);
      most = std::max(most, passed);
    }
    rig.step(sparse_info(step, 0.5));
    for (int rank = 0; rank < 3; ++rank) {
      // exact: the same operations in the same order
      ASSERT_EQ(std::vector<float>(rig.gradient(rank), rig.gradient(rank) + kNumel), sum) << step;
      const float* kept = rig.state(rank, "residual").data<float>();
      ASSERT_EQ(std::vector<float>(kept, kept + kNumel), residual[static_cast<size_t>(rank)]);
    }
  }
  EXPECT_EQ(least, 0);
  EXPECT_GT(most, 200);
}

TEST(Threshold, SendsTheLargestIfMorePassThanTheRatioAllows) {
  for (const int64_t numel : {100, 50'000}) {
    UnitRig rig(layer_fields({numel}),
                make_method("threshold", "[compression]\nthreshold = 0.5\nindices = 'u32'"));
    for (int64_t i = 0; i < numel; ++i) rig.gradient()[i] = static_cast<float>(i);
    const StepInfo info = sparse_info(0, 0.1);
    const PayloadBytes payload = rig.encode(info);
    EXPECT_EQ(static_cast<int64_t>(payload.size()), 4 + 8 * numel / 10);
    rig.decode(info, {payload});
    for (int64_t i = 0; i < numel; ++i) {
      const bool sent = i >= numel - numel / 10;
      ASSERT_EQ(rig.gradient()[i], sent ? static_cast<float>(i) : 0.0f);
      ASSERT_EQ(rig.residual()[i], sent ? 0.0f : static_cast<float>(i));
    }
  }
}

TEST(Threshold, SendsNothingButCountsIfNothingPasses) {
  UnitRig rig(layer_fields({5000, 10}),
              make_method("threshold", "[compression]\nthreshold = 1.0\nindices = 'runs16'"));
  EXPECT_EQ(rig.encode(sparse_info(0, 0.1)).size(), 4u);
}

TEST(Threshold, RefusesWrongOptions) {
  EXPECT_EQ(error_of([] { make_method("threshold", "compression.threshold = 0"); }),
            "test.toml:1: compression.threshold is 0, expected a positive 32-bit number");
  for (const char* none : {"1e-60", "1e60"}) {
    const std::string error =
        error_of([&] { make_method("threshold", concat("compression.threshold = ", none)); });
    EXPECT_NE(error.find("expected a positive 32-bit number"), std::string::npos) << none;
  }
  for (const char* none : {"inf", "nan"}) {
    EXPECT_EQ(error_of([&] { make_method("threshold", concat("compression.threshold = ", none)); }),
              concat("test.toml:1: compression.threshold is ", none, ", expected finite numbers"));
  }
}

}  // namespace
}  // namespace wisp
