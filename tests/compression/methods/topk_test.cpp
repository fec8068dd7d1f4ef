#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <set>

#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/scalar_selection.h"
#include "tests/support/step_info.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// Stich et al. 2018 on one worker and field: a = e + g; the selection of a is sent; e = the rest.
std::vector<float> scalar_step(std::vector<float>& residual, const std::vector<float>& gradient,
                               const ScalarSelection& select) {
  for (size_t i = 0; i < residual.size(); ++i) residual[i] += gradient[i];
  std::vector<float> sent(residual.size(), 0.0f);
  for (const size_t i : select(residual)) std::swap(sent[i], residual[i]);
  return sent;
}

using SelectionAt = std::function<std::vector<size_t>(const StepInfo&, const std::vector<float>&)>;

/// A heavy-tailed number. Few are large, so a factor of 0.8 to a threshold lets few more pass.
float heavy_tailed(float uniform) {
  const float u = uniform - 0.5f;
  return 1.0f / (u + (u < 0.0f ? -1e-3f : 1e-3f));
}

/// Compares results and residuals with those of scalar models, over 50 steps of 3 workers.
void compare_with_scalars(const std::string& toml, const SelectionAt& select) {
  constexpr int kWorkers = 3;
  constexpr int64_t kNumel = 6000;
  std::deque<UnitRig> rigs;
  std::vector<std::vector<float>> residual(kWorkers, std::vector<float>(kNumel, 0.0f));
  for (int rank = 0; rank < kWorkers; ++rank)
    rigs.emplace_back(layer_fields({kNumel}), make_method("topk", toml));
  for (int64_t step = 0; step < 50; ++step) {
    const StepInfo info = sparse_info(step, 0.01, kWorkers);
    std::vector<PayloadBytes> payloads;
    std::vector<float> sum(kNumel, 0.0f);
    for (int rank = 0; rank < kWorkers; ++rank) {
      UnitRig& rig = rigs[static_cast<size_t>(rank)];
      const Philox noise(2, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
      std::vector<float> gradient;
      for (uint64_t i = 0; i < kNumel; ++i) gradient.push_back(heavy_tailed(noise.uniform(i)));
      std::copy(gradient.begin(), gradient.end(), rig.gradient());
      payloads.push_back(rig.encode(info));
      const auto sent = scalar_step(residual[static_cast<size_t>(rank)], gradient,
                                    [&](const auto& a) { return select(info, a); });
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += sent[i];
    }
    for (int rank = 0; rank < kWorkers; ++rank) {
      UnitRig& rig = rigs[static_cast<size_t>(rank)];
      rig.decode(info, payloads);
      // exact: the same operations in the same order
      ASSERT_EQ(std::vector<float>(rig.gradient(), rig.gradient() + kNumel), sum) << step;
      ASSERT_EQ(std::vector<float>(rig.residual(), rig.residual() + kNumel),
                residual[static_cast<size_t>(rank)]);
    }
  }
}

TEST(Topk, FollowsAScalarModelOfThePaper) {
  compare_with_scalars("", [](const StepInfo&, const auto& a) { return select_largest(a, 60); });
}

TEST(Topk, FollowsAScalarModelWithASampledThreshold) {
  std::set<size_t> counts;
  compare_with_scalars("compression.selection = 'sampled'", [&](const StepInfo& info,
                                                                const std::vector<float>& a) {
    const uint64_t key = 1;  // key of the field
    auto chosen = select_sampled(a, 60, Philox(info.seed, static_cast<uint64_t>(info.step), key));
    counts.insert(chosen.size());
    return chosen;
  });
  EXPECT_GT(counts.size(), 5u) << "a sampled threshold lets 0.8 k to k pass";
}

TEST(Topk, LosesNothing) {
  for (const char* values : {"f32", "f16"}) {
    UnitRig rig(layer_fields({500}),
                make_method("topk", concat("compression.values = \"", values, "\"")));
    std::vector<double> given(500, 0.0), sent(500, 0.0);
    for (int64_t step = 0; step < 40; ++step) {
      const Philox noise(3, static_cast<uint64_t>(step), 0);
      for (size_t i = 0; i < given.size(); ++i) {
        rig.gradient()[i] = noise.uniform(i) - 0.5f;
        given[i] += static_cast<double>(rig.gradient()[i]);
      }
      rig.decode(sparse_info(step, 0.02), {rig.encode(sparse_info(step, 0.02))});
      for (size_t i = 0; i < sent.size(); ++i) sent[i] += static_cast<double>(rig.gradient()[i]);
    }
    for (size_t i = 0; i < given.size(); ++i) {
      // f32 rounding of 40 additions of numbers below 8
      EXPECT_NEAR(sent[i] + static_cast<double>(rig.residual()[i]), given[i], 2e-5) << values;
    }
  }
}

TEST(Topk, KeepsItsResidualIfTheGradientIsNotFinite) {
  UnitRig rig(layer_fields({8000}), make_method("topk", "compression.indices = 'runs16'"));
  std::fill_n(rig.residual(), 8000, 3.0f);
  std::fill_n(rig.gradient(), 8000, std::numeric_limits<float>::infinity());
  rig.unit.finite = false;
  const PayloadBytes payload = rig.encode(sparse_info(0, 0.01));
  EXPECT_TRUE(payload.empty());
  rig.decode(sparse_info(0, 0.01), {payload});
  EXPECT_EQ(std::count(rig.gradient(), rig.gradient() + 8000, 0.0f), 8000);
  EXPECT_EQ(std::count(rig.residual(), rig.residual() + 8000, 3.0f), 8000);
}

TEST(Topk, ForgetsTheRestWithoutFeedback) {
  UnitRig rig(layer_fields({4}), make_method("topk", "compression.feedback = \"none\""));
  EXPECT_TRUE(rig.state.tensors.empty());
  for (int64_t i = 0; i < 4; ++i) rig.gradient()[i] = static_cast<float>(i);
  const StepInfo info = sparse_info(0, 0.25);
  rig.decode(info, {rig.encode(info)});
  EXPECT_EQ(rig.gradient()[3], 3.0f);
  std::fill_n(rig.gradient(), 4, 0.0f);
  rig.decode(info, {rig.encode(info)});
  EXPECT_EQ(rig.gradient()[2], 0.0f);
}

TEST(Topk, LeavesMomentumAndDecayToTheOptimizer) {
  const Traits traits = make_method("topk", "")->traits();
  EXPECT_EQ(traits.momentum, Home::optimizer);
  EXPECT_EQ(traits.decay, Home::optimizer);
  EXPECT_EQ(traits.result, UpdateRule::gradient);
  EXPECT_TRUE(traits.sparse && traits.dense_1d);
}

TEST(Topk, WorksOnALateStream) {
  const std::string runs = "compression.indices = 'runs16'";
  UnitRig now(layer_fields({9000, 400}), make_method("topk", runs));
  TestContext late({.late = true});
  UnitRig later(layer_fields({9000, 400}), make_method("topk", runs));
  for (int64_t i = 0; i < now.unit.gradient.numel(); ++i)
    now.gradient()[i] = later.gradient()[i] = std::sin(static_cast<float>(i));
  const StepInfo info = sparse_info(0, 0.01);
  const PayloadBytes payload = now.encode(info);

  const Message message = later.compressor->message(later.unit.spec, info, 0);
  const Tensor scratch({later.compressor->scratch_bytes(later.unit.spec, info)}, DType::u8);
  const Tensor out({message.bytes}, DType::u8);
  int64_t used = -1;
  const Outlet outlet{out.raw(), message.bytes, &used};
  later.unit.scratch = scratch.raw();
  later.compressor->encode(late.context, later.unit, info, 0, {&outlet, 1});
  late.stream.synchronize();
  EXPECT_EQ(PayloadBytes(out.raw(), out.raw() + used), payload);

  int64_t complaint = 0;
  const Payload damaged{2, out.raw(), used, &complaint};
  *reinterpret_cast<uint32_t*>(out.raw()) = 1'000'000;
  later.compressor->decode(late.context, later.unit, info, 0, {&damaged, 1});
  late.stream.synchronize();
  EXPECT_EQ(complaint_in(complaint),
            "the payload of rank 2: field 0 has 1000000 entries, which do not fit the field or "
            "the payload");
}

}  // namespace
}  // namespace wisp
