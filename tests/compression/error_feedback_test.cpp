#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/method_rig.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

StepInfo info_of(int64_t step, double ratio) {
  StepInfo info;
  info.step = info.applied = step;
  info.ratio = ratio;
  info.lr = 0.1;
  info.last_lr = step > 0 ? 0.1 : 0.0;
  return info;
}

std::function<std::unique_ptr<Compressor>()> topk(const std::string& feedback,
                                                  const CompressorSetup& setup = {}) {
  return [=] {
    return make_method("topk", concat("compression.feedback = \"", feedback, "\""), setup);
  };
}

/// The top-1 parts that a worker sends when its gradient is (3, 2) in each step.
std::vector<std::vector<float>> sent_of_constant(const std::string& feedback, int steps,
                                                 MethodRig& rig) {
  std::vector<std::vector<float>> sent;
  std::vector<float> before(2, 0.0f);
  const bool tracks = feedback != "ef";
  for (int64_t step = 0; step < steps; ++step) {
    rig.gradient(0)[0] = 3.0f;
    rig.gradient(0)[1] = 2.0f;
    rig.step(info_of(step, 0.5));
    std::vector<float> now(rig.gradient(0), rig.gradient(0) + 2);
    if (tracks)
      now.assign(rig.state(0, "tracked").data<float>(), rig.state(0, "tracked").data<float>() + 2);
    std::vector<float> part = now;
    for (size_t i = 0; tracks && i < 2; ++i) part[i] -= before[i];
    sent.push_back(part);
    before = now;
  }
  return sent;
}

using Rows = std::vector<std::vector<float>>;

TEST(ErrorFeedback, SendsWhatThePapersSend) {
  MethodRig ef(1, layer_fields({2}), topk("ef"));
  EXPECT_EQ(sent_of_constant("ef", 5, ef), (Rows{{3, 0}, {0, 4}, {6, 0}, {0, 4}, {6, 0}}));

  MethodRig ef21(1, layer_fields({2}), topk("ef21"));
  EXPECT_EQ(sent_of_constant("ef21", 3, ef21), (Rows{{3, 0}, {0, 2}, {0, 0}}));
  EXPECT_EQ(ef21.gradient(0)[0], 3.0f);  // the result is the sum of all that was sent
  EXPECT_EQ(ef21.gradient(0)[1], 2.0f);

  MethodRig sgdm(1, layer_fields({2}), topk("ef21_sgdm", {.momentum = 0.5}));
  EXPECT_EQ(sent_of_constant("ef21_sgdm", 5, sgdm),
            (Rows{{1.5f, 0}, {0, 1.5f}, {1.125f, 0}, {0, 0.375f}, {0.28125f, 0}}));
  EXPECT_EQ(sgdm.gradient(0)[0], 2.0f * 2.90625f);  // at the scale of momentum SGD
  EXPECT_EQ(sgdm.gradient(0)[1], 2.0f * 1.875f);
}

float noise(int64_t step, int rank, int64_t i) {
  return Philox(4, static_cast<uint64_t>(step), static_cast<uint64_t>(rank))
             .uniform(static_cast<uint64_t>(i)) -
         0.5f;
}

/// Richtarik et al. 2021: every rank's tracked_sum is the sum of all workers' tracked gradients.
TEST(ErrorFeedback, TracksTheSameSumEverywhere) {
  constexpr int kWorkers = 3;
  constexpr int64_t kNumel = 900;
  for (const char* feedback : {"ef21", "ef21_sgdm"}) {
    MethodRig rig(kWorkers, layer_fields({kNumel}), topk(feedback, {.momentum = 0.5}));
    for (int64_t step = 0; step < 50; ++step) {
      for (int rank = 0; rank < kWorkers; ++rank)
        for (int64_t i = 0; i < kNumel; ++i) rig.gradient(rank)[i] = noise(step, rank, i);
      rig.step(info_of(step, 0.02));
    }
    for (int64_t i = 0; i < kNumel; ++i) {
      double sum = 0.0;
      for (int rank = 0; rank < kWorkers; ++rank)
        sum += static_cast<double>(rig.state(rank, "tracked").data<float>()[i]);
      for (int rank = 0; rank < kWorkers; ++rank) {
        const float tracked = rig.state(rank, "tracked_sum").data<float>()[i];
        EXPECT_NEAR(tracked, sum, 1e-5);  // rounding of 50 f32 additions in another order
        EXPECT_EQ(tracked, rig.state(0, "tracked_sum").data<float>()[i]);
      }
    }
  }
}

/// Quadratics with another minimizer at each worker. EF21 reaches the optimum of the mean with a
/// constant learning rate, although each worker's gradient there is far from zero.
TEST(ErrorFeedback, ReachesTheOptimumOfDifferentWorkers) {
  constexpr int kWorkers = 3;
  constexpr int64_t kNumel = 20;
  MethodRig rig(kWorkers, layer_fields({kNumel}), topk("ef21"));
  std::vector<float> x(kNumel, 0.0f);
  for (int64_t step = 0; step < 2000; ++step) {
    for (int rank = 0; rank < kWorkers; ++rank)
      for (int64_t i = 0; i < kNumel; ++i)
        rig.gradient(rank)[i] = (x[static_cast<size_t>(i)] - 10.0f * noise(0, rank, i)) / kWorkers;
    rig.step(info_of(step, 0.05));
    for (int64_t i = 0; i < kNumel; ++i) x[static_cast<size_t>(i)] -= 0.02f * rig.gradient(0)[i];
  }
  for (int64_t i = 0; i < kNumel; ++i) {
    float optimum = 0.0f;
    for (int rank = 0; rank < kWorkers; ++rank) optimum += 10.0f * noise(0, rank, i) / kWorkers;
    EXPECT_NEAR(x[static_cast<size_t>(i)], optimum, 1e-3f);
  }
}

TEST(ErrorFeedback, KeepsTheUpdateUnitsOfItsResidual) {
  MethodRig rig(1, layer_fields({2}),
                [] { return make_method("topk", "compression.residual = \"update\""); });
  rig.gradient(0)[0] = 3.0f;
  rig.gradient(0)[1] = 2.0f;
  rig.step(info_of(0, 0.5));  // keeps 2, at the learning rate 0.1
  rig.gradient(0)[0] = 0.0f;
  rig.gradient(0)[1] = 1.0f;
  StepInfo info = info_of(1, 0.5);
  info.lr = 0.05;
  rig.step(info);
  EXPECT_EQ(rig.gradient(0)[1], 5.0f);  // 0.05 · 5 = 0.1 · 2 + 0.05 · 1
}

/// A step without a finite gradient sends nothing of the residual, whatever its learning rate.
TEST(ErrorFeedback, KeepsTheUpdateOverAStepThatIsNotFinite) {
  MethodRig rig(1, layer_fields({2}),
                [] { return make_method("topk", "compression.residual = \"update\""); });
  rig.gradient(0)[0] = 3.0f;
  rig.gradient(0)[1] = 2.0f;
  rig.step(info_of(0, 0.5));  // keeps 2, at the learning rate 0.1
  StepInfo info = info_of(1, 0.5);
  info.lr = 0.025;
  rig.unit(0).finite = false;
  rig.step(info);
  rig.unit(0).finite = true;
  rig.gradient(0)[0] = 0.0f;
  rig.gradient(0)[1] = 1.0f;
  info.last_lr = 0.025;
  rig.step(info);
  EXPECT_EQ(rig.gradient(0)[1], 9.0f);  // 0.025 · 9 = 0.1 · 2 + 0.025 · 1
}

TEST(ErrorFeedback, DecaysAndAveragesAtTheWorker) {
  MethodRig rig(2, layer_fields({1}), topk("ef21_sgdm", {.momentum = 0.75, .weight_decay = 0.5}));
  const Traits traits = rig.compressor(0).traits();
  EXPECT_EQ(traits.momentum, Home::compressor);
  EXPECT_EQ(traits.decay, Home::compressor);
  EXPECT_EQ(traits.result, UpdateRule::update);
  EXPECT_EQ(traits.clipping, Clipping::local_only);
  for (int rank = 0; rank < 2; ++rank) {
    rig.gradient(rank)[0] = 1.0f;
    rig.weight(rank)[0] = 8.0f;
  }
  rig.step(info_of(0, 1.0));
  // v = 0.25 (1 + 0.5 · 8 / 2) = 0.75; the result is the sum of two, divided by 0.25
  EXPECT_EQ(rig.momentum(0)[0], 0.75f);
  EXPECT_EQ(rig.gradient(1)[0], 6.0f);
  rig.momentum(0)[0] = 4.0f;  // heavy-ball momentum of the mean
  StepInfo info = info_of(1, 1.0);
  info.ranks = info.summands = 2;
  rig.compressor(0).engage(rig.context(), rig.unit(0), info);
  EXPECT_EQ(rig.momentum(0)[0], 0.5f);
}

/// Lin et al. 2018: top-k with momentum correction and masking is DGC, bit for bit.
TEST(ErrorFeedback, MakesDgcOfTopkByMomentumCorrection) {
  constexpr int kWorkers = 3;  // a divisor without exact quotients
  constexpr int64_t kNumel = 6000;
  for (const bool nesterov : {false, true}) {
    for (const char* masking : {"true", "false"}) {
      const CompressorSetup setup{
          .workers = kWorkers, .momentum = 0.9, .nesterov = nesterov, .weight_decay = 5e-4};
      const std::string mask = concat("compression.masking = ", masking);
      MethodRig dgc(kWorkers, layer_fields({kNumel}),
                    [&] { return make_method("dgc", mask, setup); });
      MethodRig corrected(kWorkers, layer_fields({kNumel}), [&] {
        return make_method("topk", "compression.momentum_correction = true\n" + mask, setup);
      });
      EXPECT_EQ(corrected.compressor(0).traits().momentum, Home::compressor);
      EXPECT_EQ(corrected.compressor(0).traits().decay, Home::compressor);
      EXPECT_EQ(corrected.compressor(0).traits().result, UpdateRule::update);
      EXPECT_EQ(corrected.compressor(0).traits().clipping, Clipping::local_only);
      for (MethodRig* rig : {&dgc, &corrected}) {
        StepInfo info = info_of(0, 0.01);
        info.ranks = info.summands = kWorkers;
        for (int rank = 0; rank < kWorkers; ++rank) {
          for (int64_t i = 0; i < kNumel; ++i) rig->momentum(rank)[i] = noise(99, 0, i);
          rig->compressor(rank).engage(rig->context(), rig->unit(rank), info);
        }
      }
      for (int64_t step = 0; step < 20; ++step) {
        for (MethodRig* rig : {&dgc, &corrected}) {
          for (int rank = 0; rank < kWorkers; ++rank) {
            rig->unit(rank).finite = step != 7;
            for (int64_t i = 0; i < kNumel; ++i) {
              rig->weight(rank)[i] = noise(77, 0, i);
              rig->gradient(rank)[i] = noise(step, rank, i);
            }
          }
          rig->step(info_of(step, 0.01));
        }
        const auto same = [&](const float* a, const float* b) {
          return std::vector<float>(a, a + kNumel) == std::vector<float>(b, b + kNumel);
        };
        ASSERT_TRUE(same(corrected.gradient(1), dgc.gradient(1))) << step;
        for (int rank = 0; rank < kWorkers; ++rank) {
          ASSERT_TRUE(same(corrected.momentum(rank), dgc.momentum(rank))) << step;
          ASSERT_TRUE(same(corrected.state(rank, "residual").data<float>(),
                           dgc.state(rank, "residual").data<float>()));
        }
      }
    }
  }
}

TEST(ErrorFeedback, CorrectsMomentumWithoutAResidual) {
  MethodRig rig(1, layer_fields({2}), [] {
    return make_method("topk",
                       "compression.momentum_correction = true\ncompression.feedback = \"none\"",
                       {.momentum = 0.5});
  });
  for (int64_t step = 0; step < 3; ++step) {
    rig.gradient(0)[0] = 4.0f;
    rig.gradient(0)[1] = 3.0f;
    rig.step(info_of(step, 0.5));
    // u is (4, 3), then (4, 4.5), then (6, 3); its larger element is sent and forgotten
    EXPECT_EQ(rig.gradient(0)[step % 2], step == 0 ? 4.0f : step == 1 ? 4.5f : 6.0f);
    EXPECT_EQ(rig.gradient(0)[1 - step % 2], 0.0f);
  }
}

/// A code that sends something of every element would leave no momentum.
TEST(ErrorFeedback, MasksSparseCodesOnly) {
  MethodRig rig(1, layer_fields({1}), [] {
    return make_method("bf16", "compression.momentum_correction = true", {.momentum = 0.5});
  });
  for (const float sum : {1.0f, 1.5f, 1.75f}) {
    rig.gradient(0)[0] = 1.0f;
    rig.step(info_of(0, 1.0));
    EXPECT_EQ(rig.gradient(0)[0], sum);
  }
}

TEST(ErrorFeedback, KeepsAllIfTheGradientIsNotFinite) {
  for (const char* feedback : {"ef", "ef21", "ef21_sgdm"}) {
    MethodRig rig(2, layer_fields({4}), topk(feedback, {.momentum = 0.5}));
    for (int64_t i = 0; i < 4; ++i) {
      rig.gradient(0)[i] = static_cast<float>(i + 1);
      rig.gradient(1)[i] = -2.0f;
    }
    rig.step(info_of(0, 0.25));
    const char* name = std::string(feedback) == "ef" ? "residual" : "tracked";
    const Tensor& kept = rig.state(0, name);
    const std::vector<float> before(kept.data<float>(), kept.data<float>() + 4);
    const float average = rig.momentum(0)[3];
    rig.unit(0).finite = false;
    rig.gradient(0)[0] = std::nanf("");
    rig.step(info_of(1, 0.25));
    EXPECT_EQ(std::vector<float>(kept.data<float>(), kept.data<float>() + 4), before) << feedback;
    EXPECT_EQ(rig.momentum(0)[3], average);
    for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isfinite(rig.gradient(1)[i]));
  }
}

TEST(ErrorFeedback, IsNamedInTheConfiguration) {
  EXPECT_EQ(error_of([] { make_method("topk", "compression.feedback = \"yes\""); }),
            "test.toml:1: compression.feedback is 'yes', expected auto, none, ef, ef21 or "
            "ef21_sgdm");
  EXPECT_EQ(error_of([] { make_method("topk", "compression.residual = \"lr\""); }),
            "test.toml:1: compression.residual is 'lr', expected gradient or update");
  EXPECT_EQ(error_of([] { make_method("fp16", "compression.residual = \"update\""); }),
            "test.toml:1: compression.residual = \"update\" is for compression.feedback = \"ef\"");
  EXPECT_EQ(error_of([] {
              make_method("topk",
                          "compression.momentum_correction = true\n"
                          "compression.feedback = \"ef21\"");
            }),
            "test.toml:1: compression.momentum_correction is for compression.feedback = \"none\" "
            "or \"ef\"; ef21_sgdm has a momentum of its own");
  EXPECT_EQ(error_of([] {
              make_method("topk", "compression.feedback = \"ef21_sgdm\"",
                          {.momentum = 0.9, .nesterov = true});
            }),
            "test.toml:1: ef21_sgdm averages gradients and knows no Nesterov step; set "
            "optimizer.nesterov = false");
}

}  // namespace
}  // namespace wisp
