#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/error_of.h"
#include "tests/support/scalar_run.h"
#include "tests/support/test_replica.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

constexpr CompressorSetup kSetup{.momentum = 0.9, .weight_decay = 0.25};

MethodRig::Make sign_method(const std::string& name) {
  return [name] { return make_method(name, "", kSetup); };
}

float majority(int votes) { return votes >= 0 ? 1.0f : -1.0f; }

float tie(int64_t step, int64_t i) { return (step + i) % 2 == 0 ? 1.0f : -1.0f; }

/// Bernstein et al. 2019: the sign of the sum of signs.
TEST(Signsgd, FollowsAScalarModelOfThePaper) {
  constexpr int64_t kNumel = 333;
  MethodRig rig(3, layer_fields({kNumel}), sign_method("signsgd"));
  follow(rig, kNumel, 50, 1.0, [&](int64_t, const std::vector<Floats>& gradients) {
    Floats result;
    for (size_t i = 0; i < kNumel; ++i) {
      int votes = 0;
      for (const Floats& g : gradients) votes += g[i] >= 0.0f ? 1 : -1;
      result.push_back(majority(votes));
    }
    return result;
  });
}

TEST(Signum, FollowsAScalarModelOfThePaper) {
  constexpr int64_t kNumel = 333;
  MethodRig rig(3, layer_fields({kNumel}), sign_method("signum"));
  for (int rank = 0; rank < 3; ++rank)
    for (int64_t i = 0; i < kNumel; ++i) rig.weight(rank)[i] = static_cast<float>(i);
  std::vector<Floats> average(3, Floats(kNumel, 0.0f));
  follow(rig, kNumel, 50, 1.0, [&](int64_t, const std::vector<Floats>& gradients) {
    Floats result;
    for (size_t i = 0; i < kNumel; ++i) {
      int votes = 0;
      for (size_t rank = 0; rank < 3; ++rank) {
        average[rank][i] = 0.9f * average[rank][i] + (1.0f - 0.9f) * gradients[rank][i];
        votes += average[rank][i] >= 0.0f ? 1 : -1;
      }
      result.push_back(majority(votes) + 0.25f * static_cast<float>(i));
    }
    return result;
  });
}

/// 1 to 5 workers, and units whose bits do not fill the owners' shares.
TEST(Signsgd, CountsVotesAtTheOwners) {
  for (int workers = 1; workers <= 5; ++workers) {
    for (const auto& sizes : {std::vector<int64_t>{1}, {8}, {9, 1, 70}, {1000, 3}}) {
      MethodRig rig(workers, layer_fields(sizes), sign_method("signsgd"));
      const std::vector<Field> fields = layer_fields(sizes);
      const int64_t end = fields.back().slices[0].offset + fields.back().numel;
      std::vector<Floats> given;
      for (int rank = 0; rank < workers; ++rank) {
        given.push_back(noise(end, workers, rank));
        std::copy(given.back().begin(), given.back().end(), rig.gradient(rank));
      }
      rig.step(step_info(0));
      int64_t bits = 0;
      for (const Field& field : fields) bits += (field.numel + 7) / 8;
      const auto share = static_cast<size_t>((bits + workers - 1) / workers);
      EXPECT_EQ(rig.sent(0, 0).size(), share * static_cast<size_t>(workers));
      EXPECT_EQ(rig.sent(0, 1).size(), share);
      for (const Field& field : fields) {
        for (int64_t i = 0; i < field.numel; ++i) {
          const int64_t at = field.slices[0].offset + i;
          int votes = 0;
          for (const Floats& g : given) votes += g[static_cast<size_t>(at)] >= 0.0f ? 1 : -1;
          for (int rank = 0; rank < workers; ++rank)
            ASSERT_EQ(rig.gradient(rank)[at], votes == 0 ? tie(0, i) : majority(votes))
                << workers << " workers, " << at;
        }
      }
    }
  }
}

TEST(Signsgd, CountsZeroAsPositiveAndTiesInTurn) {
  MethodRig rig(2, layer_fields({5}), sign_method("signsgd"));
  const Floats a{0.0f, -0.0f, 1.0f, -1.0f, 3.0f}, b{-1.0f, 0.0f, -2.0f, -0.1f, -1.0f};
  for (const int64_t step : {0, 1}) {
    std::copy(a.begin(), a.end(), rig.gradient(0));
    std::copy(b.begin(), b.end(), rig.gradient(1));
    rig.step(step_info(step));
    const Floats expected = {tie(step, 0), 1, tie(step, 2), -1, tie(step, 4)};
    EXPECT_EQ(values_of(rig.gradient(0), 5), expected) << step;
    EXPECT_EQ(expected[0], step == 0 ? 1.0f : -1.0f);
    EXPECT_EQ(rig.sent(0, 0), (std::vector<std::byte>{std::byte{0b10111}, std::byte{0}}));
  }
}

/// Votes without a signal leave no drift for any number of workers: 5 deviations, probability 6e-7.
TEST(Signsgd, DoesNotDriftByTies) {
  constexpr int64_t kNumel = 10'000;
  for (const int workers : {2, 3, 4, 6}) {
    MethodRig rig(workers, layer_fields({kNumel}), sign_method("signsgd"));
    for (const int64_t step : {4, 5}) {
      for (int rank = 0; rank < workers; ++rank) {
        const Floats g = noise(kNumel, step, rank);
        std::copy(g.begin(), g.end(), rig.gradient(rank));
      }
      rig.step(step_info(step));
      double sum = 0.0;
      for (int64_t i = 0; i < kNumel; ++i) sum += static_cast<double>(rig.gradient(0)[i]);
      EXPECT_LT(std::fabs(sum), 5.0 * std::sqrt(static_cast<double>(kNumel))) << workers;
    }
  }
}

TEST(Signsgd, IsNotMovedByAWorkerWithoutAFiniteGradient) {
  MethodRig rig(1, layer_fields({200}), sign_method("signsgd"));
  std::fill_n(rig.gradient(0), 200, std::numeric_limits<float>::infinity());
  rig.unit(0).finite = false;
  rig.step(step_info(0));
  float sum = 0.0f;
  for (int64_t i = 0; i < 200; ++i) sum += rig.gradient(0)[i];
  EXPECT_EQ(sum, 0.0f);  // it votes + and - in turn
}

TEST(Signum, VotesByItsMomentumIfTheGradientIsNotFinite) {
  MethodRig rig(1, layer_fields({2}), sign_method("signum"));
  rig.momentum(0)[0] = -0.5f;
  rig.momentum(0)[1] = 0.5f;
  rig.gradient(0)[0] = std::numeric_limits<float>::infinity();
  rig.unit(0).finite = false;
  rig.step(step_info(0));
  EXPECT_EQ(values_of(rig.gradient(0), 2), (Floats{-1, 1}));
  EXPECT_EQ(values_of(rig.momentum(0), 2), (Floats{-0.5f, 0.5f}));
}

TEST(Signum, TakesAShareOfTheOptimizersMomentum) {
  MethodRig rig(2, layer_fields({1}), [] { return make_method("signum", "", {.momentum = 0.75}); });
  rig.momentum(0)[0] = 16.0f;
  StepInfo info = step_info(3);
  info.ranks = info.summands = 2;
  rig.compressor(0).engage(rig.context(), rig.unit(0), info);
  EXPECT_EQ(rig.momentum(0)[0], 2.0f);
}

TEST(Signsgd, LeavesMomentumAndDecayToTheOptimizer) {
  const Traits plain = make_method("signsgd", "", kSetup)->traits();
  EXPECT_EQ(plain.momentum, Home::optimizer);
  EXPECT_EQ(plain.result, UpdateRule::gradient);
  const Traits averaged = make_method("signum", "", kSetup)->traits();
  EXPECT_EQ(averaged.momentum, Home::compressor);
  EXPECT_EQ(averaged.decay, Home::compressor);
  EXPECT_EQ(averaged.result, UpdateRule::update);
  EXPECT_FALSE(plain.dense_1d || averaged.dense_1d);
}

/// Clipping scales each worker's gradient, which changes no sign.
TEST(Signsgd, StepsByOneUnderAnyClippingNorm) {
  for (const char* name : {"signsgd", "signum"}) {
    const auto run = [&](double norm) {
      ReplicaOptions options = all_by(sign_method(name));
      options.averaging.clip.norm = norm;
      return run_replicas(2, options, 1);
    };
    EXPECT_EQ(run(1e-3), run(0.0)) << name;
  }
}

TEST(Signum, RefusesNesterovsMomentum) {
  EXPECT_EQ(error_of([] {
              make_method("signum", "optimizer.nesterov = true",
                          {.momentum = 0.9, .nesterov = true});
            }),
            "test.toml:1: signum votes by an average of gradients and knows no Nesterov step; set "
            "optimizer.nesterov = false");
  EXPECT_NE(make_method("signsgd", "", {.nesterov = true}), nullptr);
}

TEST(Signsgd, RefusesAPayloadOfAnotherSize) {
  UnitRig rig(layer_fields({100}), make_method("signsgd", "", kSetup));
  EXPECT_EQ(error_of([&] { rig.decode({}, {PayloadBytes(12)}); }),
            "majority vote: the payload of rank 0 has 12 bytes, expected 13");
}

}  // namespace
}  // namespace wisp
