#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "compression/sparse/select.h"
#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/method_rig.h"
#include "tests/support/step_info.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

int64_t start_of(const StepInfo& info, uint64_t key, int64_t numel) {
  return Philox(info.seed, static_cast<uint64_t>(info.step), key)
      .below(0, static_cast<uint32_t>(numel));
}

float uniform(int64_t step, int rank, int64_t i) {
  return Philox(9, static_cast<uint64_t>(step), static_cast<uint64_t>(rank))
      .uniform(static_cast<uint64_t>(i));
}

/// Tsuzuku et al. 2018 on one worker and field, with a cap and a residual of the rounding.
struct ScalarVariance {
  std::vector<float> r, v;

  std::vector<float> step(const std::vector<float>& g, const std::vector<float>& q, size_t cap,
                          size_t start, float alpha) {
    std::vector<size_t> passed;
    float largest = 0.0f;
    for (size_t k = 0; k < g.size(); ++k) {
      const size_t i = (start + k) % g.size();
      r[i] += g[i];
      v[i] += q[i];
      if (r[i] * r[i] <= alpha * v[i]) {
        v[i] *= 0.999f;
      } else if (passed.size() < cap) {
        passed.push_back(i);
        largest = std::max(largest, std::fabs(r[i]));
      }
    }
    std::vector<float> sent(g.size(), 0.0f);
    for (const size_t i : passed) {
      const int floor = std::ilogb(r[i]);
      const bool up = std::fabs(r[i]) >= 1.5f * std::ldexp(1.0f, floor);
      const int exponent = std::min(floor + up, std::ilogb(largest));
      if (std::ilogb(largest) - exponent > 7) continue;
      sent[i] = std::copysign(std::ldexp(1.0f, exponent), r[i]);
      r[i] -= sent[i];
      v[i] = 0.0f;
    }
    return sent;
  }
};

TEST(Variance, FollowsAScalarModelOfThePaper) {
  constexpr int kWorkers = 3;
  constexpr int64_t kNumel = 600;
  for (const char* alpha : {"1.0", "1.5", "2.0"}) {
    MethodRig rig(kWorkers, {joined_field({350, 1, 249})},
                  [&] { return make_method("variance", concat("compression.alpha = ", alpha)); });
    const Field field = joined_field({350, 1, 249});
    std::vector<ScalarVariance> models(
        kWorkers, {std::vector<float>(kNumel, 0.0f), std::vector<float>(kNumel, 0.0f)});
    size_t all_sent = 0;
    for (int64_t step = 0; step < 50; ++step) {
      const StepInfo info = sparse_info(step, 0.2, kWorkers);
      std::vector<float> sum(kNumel, 0.0f);
      for (int rank = 0; rank < kWorkers; ++rank) {
        std::vector<float> g(kNumel), q(kNumel);
        for (int64_t i = 0; i < kNumel; ++i) {  // four micro-batches around each element's mean
          for (int j = 0; j < 4; ++j) {
            const float delta = std::pow(0.5f, static_cast<float>(i % 12)) *
                                (uniform(4 * step + j, rank, i) - 0.4f);
            g[static_cast<size_t>(i)] += delta;
            q[static_cast<size_t>(i)] += delta * delta;
          }
        }
        const std::vector<float> sent = models[static_cast<size_t>(rank)].step(
            g, q, 120, static_cast<size_t>(start_of(info, 1, kNumel)), std::stof(alpha));
        size_t at = 0;
        for (const Slice& slice : field.slices) {
          for (int64_t i = slice.offset; i < slice.offset + slice.numel; ++i, ++at) {
            rig.gradient(rank)[i] = g[at];
            rig.square(rank)[i] = q[at];
          }
        }
        for (size_t i = 0; i < sum.size(); ++i) {
          sum[i] += sent[i];
          all_sent += sent[i] != 0.0f;
        }
      }
      rig.step(info);
      for (int rank = 0; rank < kWorkers; ++rank) {
        const ScalarVariance& model = models[static_cast<size_t>(rank)];
        size_t at = 0;
        for (const Slice& slice : field.slices) {
          for (int64_t i = slice.offset; i < slice.offset + slice.numel; ++i, ++at) {
            // exact: the same operations in the same order
            ASSERT_EQ(rig.gradient(rank)[i], sum[at]) << step << " " << at;
            ASSERT_EQ(rig.state(rank, "residual").data<float>()[i], model.r[at]);
            ASSERT_EQ(rig.state(rank, "variance").data<float>()[i], model.v[at]);
          }
        }
      }
    }
    EXPECT_GT(all_sent, 1000u) << alpha;  // not all: the cap is met, and elements wait
    EXPECT_LT(all_sent, 50u * 3 * 120);
  }
}

TEST(Variance, LosesNothing) {
  UnitRig rig(layer_fields({40, 200}), make_method("variance", ""));
  std::vector<float> given(243, 0.0f), sent(243, 0.0f);
  for (int64_t step = 0; step < 40; ++step) {
    for (size_t i = 0; i < given.size(); ++i) {
      // padding between the fields too
      const float value = std::floor(uniform(step, 0, static_cast<int64_t>(i)) * 400.0f) - 200.0f;
      rig.gradient()[i] = value;
      rig.square()[i] = value * value / 3.0f;
      given[i] += value;
    }
    const StepInfo info = sparse_info(step, 0.3);
    rig.decode(info, {rig.encode(info)});
    for (size_t i = 0; i < sent.size(); ++i) sent[i] += rig.gradient()[i];
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (40 <= i && i < 43) continue;
    EXPECT_EQ(sent[i] + rig.residual()[i], given[i]) << i;  // exact: integers
  }
}

TEST(Variance, ForgetsWhatRoundingTookIfTold) {
  UnitRig rig(layer_fields({2}), make_method("variance", "compression.keep_rounding = false"));
  rig.gradient()[0] = 3.0f;
  rig.gradient()[1] = 5.0f;
  rig.decode(sparse_info(0, 1.0), {rig.encode(sparse_info(0, 1.0))});
  EXPECT_EQ(rig.gradient()[0], 4.0f);
  EXPECT_EQ(rig.gradient()[1], 4.0f);
  EXPECT_EQ(rig.residual()[0], 0.0f);
  EXPECT_EQ(rig.residual()[1], 0.0f);
}

std::vector<uint32_t> words_of(const PayloadBytes& payload) {
  std::vector<uint32_t> words(payload.size() / 4);
  std::memcpy(words.data(), payload.data(), 4 * words.size());
  return words;
}

PayloadBytes payload_of(const std::vector<uint32_t>& words) {
  PayloadBytes payload(4 * words.size());
  std::memcpy(payload.data(), words.data(), payload.size());
  return payload;
}

// Words by hand. 11 goes down, since nothing exceeds 2^floor(log2 11) = 8. 3 = 1.5 · 2 goes up to
// 4, and -6 up to -8. 0.09 = 1.44 · 2^-4 goes down to 2^-4, seven powers below 8, and just travels.
// 0.03 is one power lower and stays.
TEST(Variance, WordsAreTheDocumentedOnes) {
  const std::vector<float> values = {11.0f, 3.0f, 0.03f, -6.0f, 0.0f, 0.09f};
  UnitRig rig(layer_fields({6}), make_method("variance", ""));
  std::copy(values.begin(), values.end(), rig.gradient());
  const StepInfo info = sparse_info(0, 1.0);
  std::vector<uint32_t> expected = {0x00000000u, 0x10000001u, 0x80000003u, 0x70000005u};
  const auto start = static_cast<uint32_t>(start_of(info, 1, 6));
  const auto first = std::find_if(expected.begin(), expected.end(),
                                  [&](uint32_t word) { return (word & 0x0fffffffu) >= start; });
  std::rotate(expected.begin(), first, expected.end());
  expected.insert(expected.begin(), 0x41000000u);  // 8
  const PayloadBytes payload = rig.encode(info);
  EXPECT_EQ(words_of(payload), expected);
  EXPECT_EQ(std::vector<float>(rig.residual(), rig.residual() + 6),
            (std::vector<float>{3.0f, -1.0f, 0.03f, 2.0f, 0.0f, 0.09f - 0.0625f}));
  rig.decode(info, {payload, payload});
  EXPECT_EQ(std::vector<float>(rig.gradient(), rig.gradient() + 6),
            (std::vector<float>{16.0f, 8.0f, 0.0f, -16.0f, 0.0f, 0.125f}));
}

// Equal samples d of one sign: after M of them v = M d^2 and r^2 = M^2 d^2, so alpha decides at M.
TEST(Variance, SendsOnceTheMeanIsUnambiguous) {
  for (const auto& [alpha, steps] :
       std::vector<std::pair<std::string, int>>{{"1.0", 2}, {"1.5", 2}, {"2.0", 2}, {"3.0", 3}}) {
    UnitRig rig(layer_fields({1}), make_method("variance", concat("compression.alpha = ", alpha)));
    int step = 0;
    do {
      rig.gradient()[0] = rig.square()[0] = 1.0f;
      rig.decode(sparse_info(step, 1.0), {rig.encode(sparse_info(step, 1.0))});
      ++step;
    } while (rig.gradient()[0] == 0.0f && step < 10);
    EXPECT_EQ(step, steps) << alpha;
  }
  UnitRig rig(layer_fields({1}), make_method("variance", ""));
  for (int64_t step = 0; step < 20; ++step) {  // samples of changing sign never travel
    rig.gradient()[0] = step % 2 == 0 ? 1.0f : -1.0f;
    rig.square()[0] = 1.0f;
    rig.decode(sparse_info(step, 1.0), {rig.encode(sparse_info(step, 1.0))});
    EXPECT_EQ(rig.gradient()[0], 0.0f);
  }
}

TEST(Variance, PayloadsHaveTheStatedSize) {
  UnitRig rig(layer_fields({100, 1, 30}), make_method("variance", ""));
  const StepInfo info = sparse_info(0, 0.1);
  const Message message = rig.compressor->message(rig.unit.spec, info, 0);
  EXPECT_EQ(message.bytes, 4 * (2 * 3 - 1) + 4 * (10 + 1 + 3));
  EXPECT_TRUE(message.variable);
  EXPECT_EQ(rig.encode(info).size(), 20u);  // all-zero: nothing passes
  std::fill_n(rig.gradient(), rig.unit.gradient.numel(), 1.0f);
  EXPECT_EQ(static_cast<int64_t>(rig.encode(info).size()), message.bytes);  // all-equal: the caps
  std::vector<Field> large = {{{{0, (int64_t{1} << 28) + 1}}, (int64_t{1} << 28) + 1, 1}};
  const UnitSpec spec{large, large[0].numel};
  EXPECT_NE(error_of([&] { rig.compressor->message(spec, info, 0); }).find("2^28"),
            std::string::npos);
}

TEST(Variance, EveryElementHasItsTurnUnderACap) {
  UnitRig rig(layer_fields({50}), make_method("variance", ""));
  std::vector<int> sent(50, 0);
  for (int64_t step = 0; step < 200; ++step) {
    std::fill_n(rig.gradient(), 50, 1.0f);
    const StepInfo info = sparse_info(step, 0.1);
    rig.decode(info, {rig.encode(info)});
    for (size_t i = 0; i < 50; ++i) sent[i] += rig.gradient()[i] != 0.0f;
  }
  for (const int count : sent) EXPECT_GT(count, 0);
}

TEST(Variance, KeepsItsStateIfTheGradientIsNotFinite) {
  UnitRig rig(layer_fields({8}), make_method("variance", ""));
  std::fill_n(rig.residual(), 8, 3.0f);
  std::fill_n(rig.state.tensors[1].data<float>(), 8, 2.0f);
  std::fill_n(rig.gradient(), 8, std::numeric_limits<float>::infinity());
  rig.unit.finite = false;
  const PayloadBytes payload = rig.encode(sparse_info(0, 0.5));
  EXPECT_EQ(payload.size(), 4u);
  rig.decode(sparse_info(0, 0.5), {payload});
  EXPECT_EQ(std::count(rig.gradient(), rig.gradient() + 8, 0.0f), 8);
  EXPECT_EQ(std::count(rig.residual(), rig.residual() + 8, 3.0f), 8);
  const float* v = rig.state.tensors[1].data<float>();
  EXPECT_EQ(std::count(v, v + 8, 2.0f), 8);
}

TEST(Variance, TakesTinyAndHugeNumbers) {
  UnitRig rig(layer_fields({4}), make_method("variance", ""));
  const float denormal = 1e-40f, most = std::numeric_limits<float>::max();
  std::fill_n(rig.gradient(), 4, denormal);  // their squares are 0, and so is the power below them
  rig.decode(sparse_info(0, 1.0), {rig.encode(sparse_info(0, 1.0))});
  EXPECT_EQ(std::count(rig.gradient(), rig.gradient() + 4, 0.0f), 4);
  EXPECT_EQ(rig.residual()[0], denormal);

  std::fill_n(rig.gradient(), 4, 0.0f);
  rig.gradient()[0] = most;
  rig.gradient()[1] = -0x1p126f;
  rig.square()[0] = rig.square()[1] = std::numeric_limits<float>::infinity();
  rig.decode(sparse_info(1, 1.0), {rig.encode(sparse_info(1, 1.0))});
  EXPECT_EQ(rig.gradient()[0], 0x1p127f);
  EXPECT_EQ(rig.gradient()[1], -0x1p126f);
  EXPECT_EQ(rig.residual()[0], most - 0x1p127f);
  EXPECT_EQ(rig.state.tensors[1].data<float>()[0], 0.0f);
}

TEST(Variance, RefusesMalformedPayloads) {
  UnitRig rig(layer_fields({8, 8}), make_method("variance", ""));
  const StepInfo info = sparse_info(0, 0.5);
  const uint32_t one = 0x3f800000u;
  const auto error = [&](const std::vector<uint32_t>& words) {
    return error_of([&] { rig.decode(info, {payload_of(words)}); });
  };
  EXPECT_EQ(error({1, one, one, 0, 7}), "no error");
  EXPECT_EQ(error({2, one, one, 5, 3, 0x90000007u}), "no error");
  EXPECT_NE(error({0, 0}).find("has 8 bytes, expected 12 and 4 per word"), std::string::npos);
  EXPECT_NE(error({4, one, one, 0, 1, 2, 3, 0, 1, 2, 3, 4}).find("at most 44"), std::string::npos);
  const std::string of = "the payload of rank 0: field ";
  EXPECT_EQ(error({3, one, one, 0, 7}),
            of + "0 has 3 entries, which do not fit the field or the payload");
  EXPECT_EQ(error({1, one, one, 0, 8}), of + "1 has entry 0 after its last element");
  for (const uint32_t top : {0x7f800000u, 0x7fc00000u, 0xbf800000u, 0x3f800001u, 0u})
    EXPECT_EQ(error({1, top, one, 0, 7}), of + "0 has an invalid scale") << top;
  EXPECT_EQ(error({0, one, 0, 7}), of + "0 has an invalid scale");
  EXPECT_EQ(error({2, one, one, 3, 3, 1}), of + "0 has entry 1 out of order");
  EXPECT_EQ(error({3, one, one, 3, 1, 3, 1}), of + "0 has entry 2 out of order");
}

TEST(Variance, WorksOnALateStream) {
  UnitRig now(layer_fields({9000, 400}), make_method("variance", ""));
  UnitRig later(layer_fields({9000, 400}), make_method("variance", ""));
  TestContext late({.late = true});
  for (int64_t i = 0; i < now.unit.gradient.numel(); ++i) {
    now.gradient()[i] = later.gradient()[i] = std::sin(static_cast<float>(i));
    now.square()[i] = later.square()[i] = 0.5f;
  }
  const StepInfo info = sparse_info(0, 0.1);
  const PayloadBytes payload = now.encode(info);
  const Tensor scratch({later.compressor->scratch_bytes(later.unit.spec, info)}, DType::u8);
  const Tensor out({later.compressor->message(later.unit.spec, info, 0).bytes}, DType::u8);
  int64_t used = -1;
  const Outlet outlet{out.raw(), out.bytes(), &used};
  later.unit.scratch = scratch.raw();
  later.compressor->encode(late.context, later.unit, info, 0, {&outlet, 1});
  late.stream.synchronize();
  EXPECT_EQ(PayloadBytes(out.raw(), out.raw() + used), payload);
}

TEST(Variance, ChecksItsOptions) {
  EXPECT_NE(error_of([] { make_method("variance", "compression.alpha = 0.5"); }).find("1 to 1e6"),
            std::string::npos);
  EXPECT_NE(error_of([] { make_method("variance", "compression.zeta = 0.0"); }).find("zeta <= 1"),
            std::string::npos);
}

}  // namespace
}  // namespace wisp
