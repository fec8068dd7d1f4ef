#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/error_of.h"
#include "tests/support/scalar_run.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

constexpr float kBeta = 0.5f;

std::unique_ptr<Compressor> onebit_adam() {
  return make_method("onebit_adam", "compression.freeze_step = 1", {.momentum = kBeta});
}

/// error + value becomes ± its root mean square, where `moment` is not 0.
Floats compress(Floats& error, const Floats& value, const Floats& moment, size_t begin,
                size_t end) {
  double squares = 0.0;
  int count = 0;
  Floats sent(end - begin, 0.0f);
  for (size_t i = begin; i < end; ++i) {
    if (moment[i] == 0.0f) continue;
    error[i] += value[i];
    squares += static_cast<double>(error[i]) * static_cast<double>(error[i]);
    ++count;
  }
  const float scale = count > 0 ? static_cast<float>(std::sqrt(squares / count)) : 0.0f;
  for (size_t i = begin; i < end; ++i) {
    if (moment[i] == 0.0f) continue;
    sent[i - begin] = error[i] >= 0.0f ? scale : -scale;
    error[i] -= sent[i - begin];
  }
  return sent;
}

/// Tang et al. 2021 with 3 workers, which own 112, 112 and 109 of 333 elements.
TEST(OneBitAdam, FollowsAScalarModelOfThePaper) {
  constexpr size_t kNumel = 333, kPart = 112;
  MethodRig rig(3, layer_fields({kNumel}), onebit_adam);
  Floats moment(kNumel), owners(kNumel, 0.0f);
  for (size_t i = 0; i < kNumel; ++i)
    moment[i] = i % 10 == 0 ? 0.0f : std::sin(static_cast<float>(i));
  std::vector<Floats> error(3, Floats(kNumel, 0.0f));
  for (int rank = 0; rank < 3; ++rank) std::copy(moment.begin(), moment.end(), rig.momentum(rank));
  follow(
      rig, kNumel, 50, 1.0,
      [&](int64_t, const std::vector<Floats>& gradients) {
        Floats sum(kNumel, 0.0f);
        for (size_t rank = 0; rank < 3; ++rank) {
          Floats value(kNumel);
          for (size_t i = 0; i < kNumel; ++i)
            value[i] = kBeta / 3.0f * moment[i] + (1.0f - kBeta) * gradients[rank][i];
          const Floats sent = compress(error[rank], value, moment, 0, kNumel);
          for (size_t i = 0; i < kNumel; ++i) sum[i] += sent[i];
        }
        Floats next;
        for (size_t begin = 0; begin < kNumel; begin += kPart) {
          const size_t end = std::min(kNumel, begin + kPart);
          const Floats part = compress(owners, sum, moment, begin, end);
          next.insert(next.end(), part.begin(), part.end());
        }
        moment = next;  // the optimizer takes the result as momentum
        for (int rank = 0; rank < 3; ++rank)
          std::copy(moment.begin(), moment.end(), rig.momentum(rank));
        return next;
      },
      1e-5f);  // sums of squares in another order
}

TEST(OneBitAdam, SendsAScaleAndBitsOfEachField) {
  MethodRig rig(2, layer_fields({20, 3}), onebit_adam);
  for (int rank = 0; rank < 2; ++rank) {
    for (int64_t i = 0; i < 26; ++i) {
      rig.momentum(rank)[i] = 1.0f;
      rig.gradient(rank)[i] = i % 2 == 0 ? 3.0f : -5.0f;  // 0.25 + 0.5 g = 1.75 or -2.25
    }
  }
  rig.step(step_info(1));
  // for each of two owners: 2 scales, 2 bytes of 20 elements, 1 byte of 3
  EXPECT_EQ(rig.sent(0, 0).size(), 2u * (8 + 2 + 1));
  EXPECT_EQ(rig.sent(0, 1).size(), 8u + 2 + 1);
  float scale = 0.0f;
  std::memcpy(&scale, rig.sent(0, 0).data(), 4);
  EXPECT_FLOAT_EQ(scale, std::sqrt((1.75f * 1.75f + 2.25f * 2.25f) / 2.0f));
  EXPECT_EQ(rig.sent(0, 0)[8], std::byte{0b01010101});
  EXPECT_EQ(rig.sent(0, 0)[11 + 9], std::byte{0});  // the second owner has elements 16 to 19 …
  EXPECT_EQ(rig.sent(0, 0)[11 + 8], std::byte{0b0101});
  EXPECT_EQ(rig.sent(0, 0)[11 + 10], std::byte{0});  // … and none of the three
}

TEST(OneBitAdam, LeavesUnusedElementsAlone) {
  MethodRig rig(2, layer_fields({4}), onebit_adam);
  for (int rank = 0; rank < 2; ++rank) {
    rig.momentum(rank)[1] = 2.0f;
    for (int64_t i = 0; i < 4; ++i) rig.gradient(rank)[i] = 1.0f;
  }
  rig.step(step_info(1));
  EXPECT_EQ(values_of(rig.gradient(0), 4), (Floats{0, 2, 0, 0}));
}

/// A worker without a finite gradient sends its share of the moment, and keeps its error.
TEST(OneBitAdam, GoesOnByItsMomentIfNoGradientIsFinite) {
  MethodRig rig(2, layer_fields({4}), onebit_adam);
  const Floats moment{2, -2, 0, 2}, error{0.25f, 3, 0, -3};
  for (int rank = 0; rank < 2; ++rank) {
    std::copy(moment.begin(), moment.end(), rig.momentum(rank));
    std::copy(error.begin(), error.end(), rig.state(rank, "residual").data<float>());
    std::fill_n(rig.gradient(rank), 4, std::numeric_limits<float>::quiet_NaN());
    rig.unit(rank).finite = false;
  }
  rig.step(step_info(1));
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(values_of(rig.gradient(rank), 4), (Floats{1, -1, 0, 1}));  // kBeta m
    EXPECT_EQ(values_of(rig.state(rank, "residual").data<float>(), 4), error);
  }
}

TEST(OneBitAdam, StartsAfterItsWarmUp) {
  const auto made = make_method("onebit_adam", "compression.freeze_step = 3", {.momentum = 0.9});
  EXPECT_FALSE(made->started(step_info(2)));
  EXPECT_TRUE(made->started(step_info(3)));
  EXPECT_EQ(made->traits().result, UpdateRule::momentum);
  EXPECT_EQ(made->traits().clipping, Clipping::local_only);
  EXPECT_EQ(error_of([] { make_method("onebit_adam", "compression.freeze_step = 0"); }),
            "test.toml:1: compression.freeze_step is 0, expected 1 or more");
}

TEST(OneBitAdam, RefusesAPayloadOfAnotherSize) {
  UnitRig rig(layer_fields({100}), onebit_adam());
  EXPECT_EQ(error_of([&] { rig.decode({}, {PayloadBytes(16)}); }),
            "onebit_adam: the payload of rank 0 has 16 bytes, expected 17");
}

TEST(OneBitAdam, NamesASecondMomentThatIsFrozenTooEarly) {
  const auto remark = [](int64_t freeze_step, double beta2) {
    return make_method("onebit_adam", concat("compression.freeze_step = ", freeze_step),
                       {.momentum = 0.9, .beta2 = beta2})
        ->remark({});
  };
  EXPECT_EQ(remark(999, 0.999),
            "compression.freeze_step = 999 freezes the second moment before it has seen 1 / (1 - "
            "optimizer.beta2) = 1000 updates; a smaller beta2 remembers fewer");
  EXPECT_EQ(remark(1000, 0.999), "");
  EXPECT_EQ(remark(100, 0.99), "");
}

}  // namespace
}  // namespace wisp
