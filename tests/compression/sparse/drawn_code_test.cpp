// Laws of all codes that draw their positions.
#include "compression/sparse/drawn_code.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "compression/sparse/select.h"
#include "tests/support/error_of.h"
#include "tests/support/scalar_run.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// The field positions that a method draws, in the order of its payload.
std::vector<int64_t> drawn(const std::string& method, int64_t step, uint64_t id, int64_t d,
                           int64_t k) {
  const auto at = static_cast<uint64_t>(step);
  const Dither dither(5, at, id);
  const int64_t start = Philox(5, at, id).below64(1, d);
  std::vector<int64_t> positions;
  for (int64_t j = 0, begin = 0; j < k; ++j) {
    const int64_t length = d / k + (j < d % k ? 1 : 0);
    const auto within = static_cast<int64_t>(dither.bits(j) * static_cast<uint64_t>(length) >> 32);
    positions.push_back((start + (method == "random_k" ? begin + within : j)) % d);
    begin += length;
  }
  return positions;
}

class DrawnCodes : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Compressor> make(const std::string& toml = "") const {
    return make_method(GetParam(), toml);
  }
  std::unique_ptr<Code> make_code(const CompressorSetup& setup) const {
    Config config;
    return CodeRegistry::instance().find("code", GetParam()).make(config, setup);
  }
};

INSTANTIATE_TEST_SUITE_P(Methods, DrawnCodes, testing::Values("random_k", "random_block"),
                         [](const auto& method) { return std::string(method.param); });

/// a = e + g; a is sent at positions drawn for all ranks or for each; e = the rest.
TEST_P(DrawnCodes, FollowsAScalarModel) {
  constexpr int kWorkers = 3;
  constexpr int64_t kNumel = 1000;
  for (const char* sharing : {"shared", "own"}) {
    const bool shared = std::string(sharing) == "shared";
    MethodRig rig(kWorkers, layer_fields({kNumel}),
                  [&] { return make(concat("compression.sharing = \"", sharing, "\"")); });
    std::vector<Floats> residual(kWorkers, Floats(kNumel, 0.0f));
    for (int64_t step = 0; step < 50; ++step) {
      Floats sum(kNumel, 0.0f);
      for (int rank = 0; rank < kWorkers; ++rank) {
        Floats& e = residual[static_cast<size_t>(rank)];
        const Floats g = noise(kNumel, step, rank);
        for (size_t i = 0; i < kNumel; ++i) {
          rig.gradient(rank)[i] = g[i];
          e[i] += g[i];
        }
        const uint64_t apart = static_cast<uint64_t>(rank + 1) * 0x9e3779b97f4a7c15;
        const uint64_t id = 1 + (shared ? 0 : apart);
        for (const int64_t at : drawn(GetParam(), step, id, kNumel, 70)) {
          const auto i = static_cast<size_t>(at);
          sum[i] += e[i];
          e[i] = 0.0f;
        }
      }
      rig.step(step_info(step, 0.07));
      for (int rank = 0; rank < kWorkers; ++rank) {
        // exact: the same operations in the same order
        ASSERT_EQ(Floats(rig.gradient(rank), rig.gradient(rank) + kNumel), sum) << step;
        const float* e = rig.state(rank, "residual").data<float>();
        ASSERT_EQ(Floats(e, e + kNumel), residual[static_cast<size_t>(rank)]) << step;
      }
    }
  }
}

TEST_P(DrawnCodes, LosesNothing) {
  for (const char* values : {"f32", "f16", "bf16"}) {
    for (const char* sharing : {"shared", "own"}) {
      UnitRig rig({joined_field({301, 99, 100})},
                  make(concat("compression.values = \"", values, "\"\ncompression.sharing = \"",
                              sharing, "\"")));
      Floats given(506, 0.0f), sent(506, 0.0f);
      for (int64_t step = 0; step < 40; ++step) {
        const Floats g = noise(506, step, 0);
        for (size_t i = 0; i < given.size(); ++i) {
          rig.gradient()[i] = g[i];
          given[i] += g[i];
        }
        rig.decode(step_info(step, 0.1), {rig.encode(step_info(step, 0.1))});
        for (size_t i = 0; i < sent.size(); ++i) sent[i] += rig.gradient()[i];
      }
      for (const Slice& slice : rig.fields[0].slices) {
        for (auto i = static_cast<size_t>(slice.offset); i < size_t(slice.offset + slice.numel);
             ++i) {
          // f32 rounding of 40 additions of numbers below 8, in three sums
          ASSERT_NEAR(sent[i] + rig.residual()[i], given[i], 5e-5f) << values << ", " << sharing;
        }
      }
    }
  }
}

/// Each worker keeps what its own value lost to 16 bits. Nobody keeps what their sum lost.
TEST_P(DrawnCodes, LosesTheRoundingOfASharedSumOnly) {
  constexpr int64_t kNumel = 500;
  for (const auto& [values, rounding] :
       {std::pair("f32", 1e-6), {"f16", 0x1p-11}, {"bf16", 0x1p-8}}) {
    for (const char* sharing : {"shared", "own"}) {
      MethodRig rig(3, layer_fields({kNumel}), [&, values = values] {
        return make(concat("compression.values = \"", values, "\"\ncompression.sharing = \"",
                           sharing, "\""));
      });
      std::vector<double> lost(kNumel), applied(kNumel);  // applied: sums of magnitudes
      for (int64_t step = 0; step < 40; ++step) {
        for (int rank = 0; rank < rig.workers(); ++rank) {
          const Floats g = noise(kNumel, step, rank);
          std::copy(g.begin(), g.end(), rig.gradient(rank));
          for (size_t i = 0; i < lost.size(); ++i) lost[i] += static_cast<double>(g[i]);
        }
        rig.step(step_info(step, 0.1));
        for (size_t i = 0; i < lost.size(); ++i) {
          lost[i] -= static_cast<double>(rig.gradient(0)[i]);
          applied[i] += std::abs(static_cast<double>(rig.gradient(0)[i]));
        }
      }
      double most = 0.0;
      for (size_t i = 0; i < lost.size(); ++i) {
        for (int rank = 0; rank < rig.workers(); ++rank)
          lost[i] -= static_cast<double>(rig.state(rank, "residual").data<float>()[i]);
        const bool rounds = std::string(sharing) == "shared";
        // f32 rounding of 40 · 3 additions of numbers below 8
        ASSERT_LE(std::abs(lost[i]), 2e-4 + (rounds ? rounding * applied[i] : 0.0)) << values;
        most = std::max(most, std::abs(lost[i]));
      }
      if (std::string(values) == "bf16") {
        EXPECT_EQ(most > 1e-3, std::string(sharing) == "shared") << most;
      }
    }
  }
}

/// The sum of payloads is the payload of the sum. It decodes to the sum of the decoded payloads,
/// exactly so for integers.
TEST_P(DrawnCodes, AddsUpWhileItIsEncoded) {
  const std::unique_ptr<Code> code = make_code({.feedback = true});
  const std::vector<Field> fields = two_fields(300, 41, 9);
  const UnitSpec spec{fields, 350};
  TestContext test;
  StepInfo info = step_info(3, 0.2);
  const int64_t bytes = code->message(spec, info).bytes;
  Floats sum(static_cast<size_t>(bytes) / 4, 0.0f);
  Tensor apart({400}, DType::f32), together({400}, DType::f32);
  for (int rank = 0; rank < 3; ++rank) {
    Floats gradient = noise(400, 0, rank), payload(sum.size());
    for (float& g : gradient) g = std::floor(1000.0f * g);
    info.rank = rank;
    auto* data = reinterpret_cast<std::byte*>(payload.data());
    code->encode(test.context, {.gradient = gradient.data()}, spec, info, {data, bytes}, nullptr);
    code->decode(test.context, {rank, data, bytes}, 1.0f, rank > 0, spec, info, apart, nullptr);
    for (size_t j = 0; j < sum.size(); ++j) sum[j] += payload[j];
  }
  const auto* data = reinterpret_cast<const std::byte*>(sum.data());
  code->decode(test.context, {-1, data, bytes}, 1.0f, false, spec, info, together, nullptr);
  int64_t found = 0;
  for (int64_t i = 0; i < 400; ++i) {
    EXPECT_EQ(together.data<float>()[i], apart.data<float>()[i]);
    found += together.data<float>()[i] != 0.0f ? 1 : 0;
  }
  EXPECT_GT(found, 50);
}

TEST_P(DrawnCodes, SendsValuesAlone) {
  const std::vector<Field> fields = two_fields(1000, 500, 7);
  const UnitSpec spec{fields, 1507};
  for (const auto& [values, dtype, size] :
       {std::tuple("f32", DType::f32, 4), {"f16", DType::f16, 2}, {"bf16", DType::bf16, 2}}) {
    const std::string toml = concat("compression.values = \"", values, "\"\n");
    const Message shared = make(toml)->message(spec, step_info(0, 0.1), 0);
    EXPECT_EQ(shared.kind, Collective::all_reduce);
    EXPECT_EQ(shared.dtype, dtype);
    EXPECT_EQ(shared.bytes, size * (150 + 1));
    EXPECT_FALSE(shared.variable);
    const auto own = make(toml + "compression.sharing = \"own\"");
    EXPECT_EQ(own->message(spec, step_info(0, 0.1), 0).kind, Collective::all_gather);
    EXPECT_EQ(own->message(spec, step_info(0, 0.1), 0).bytes, size * (150 + 1));
    EXPECT_EQ(own->scratch_bytes(spec, step_info(0, 0.1)), 0);
  }
}

/// Each element is drawn with probability k / d = 0.4, although strata have 2 or 3 elements.
TEST_P(DrawnCodes, DrawsAllElementsAlike) {
  constexpr int64_t kNumel = 10, kKept = 4, kSteps = 10'000;
  for (const char* sharing : {"shared", "own"}) {
    UnitRig rig(
        {joined_field({3, 1, 6}, 0)},
        make(concat("compression.feedback = \"none\"\ncompression.sharing = \"", sharing, "\"")));
    std::vector<int64_t> count(kNumel, 0);
    for (int64_t step = 0; step < kSteps; ++step) {
      std::fill_n(rig.gradient(), kNumel, 8.0f);
      const StepInfo info = step_info(step, 0.4);
      rig.decode(info, {rig.encode(info)});
      int64_t sent = 0;
      for (size_t i = 0; i < kNumel; ++i) {
        // 8 · 10 / 4 = 20: values are scaled so that the mean is right
        ASSERT_TRUE(rig.gradient()[i] == 0.0f || rig.gradient()[i] == 20.0f);
        count[i] += rig.gradient()[i] != 0.0f ? 1 : 0;
        sent += rig.gradient()[i] != 0.0f ? 1 : 0;
      }
      ASSERT_EQ(sent, kKept);
    }
    // Hoeffding: a count is farther off with probability 2 exp(-2 t^2 / steps), for 10 below 1e-6
    const double far = std::sqrt(kSteps * std::log(2.0 * kNumel / 1e-6) / 2.0);
    for (const int64_t n : count)
      EXPECT_NEAR(static_cast<double>(n), static_cast<double>(kSteps * kKept / kNumel), far);
  }
}

TEST_P(DrawnCodes, ScalesOnlyWithoutFeedback) {
  const std::vector<Field> fields = layer_fields({100, 5});
  const UnitSpec spec{fields, 105};
  // at ratio 0.001: one of 100, one of 5
  EXPECT_EQ(make_code({})->variance(spec), 99.0);
  EXPECT_EQ(make_code({.feedback = true})->variance(spec), std::nullopt);
  for (const char* toml : {"", "compression.feedback = \"ef21\"",
                           "compression.feedback = \"none\"\ncompression.unbiased = false"}) {
    UnitRig rig(layer_fields({10}), make(toml));
    std::fill_n(rig.gradient(), 10, 3.0f);
    const PayloadBytes payload = rig.encode(step_info(0, 0.1));
    EXPECT_EQ(*reinterpret_cast<const float*>(payload.data()), 3.0f) << toml;
    if (std::string(toml).find("ef21") != std::string::npos) continue;
    rig.decode(step_info(0, 0.1), {payload});
    EXPECT_EQ(*std::max_element(rig.gradient(), rig.gradient() + 10), 3.0f) << toml;
  }
}

/// The mean squared error without feedback is (d / k - 1) |x|^2.
TEST_P(DrawnCodes, HasTheVarianceItStates) {
  constexpr int64_t kNumel = 10, kSteps = 20'000;
  UnitRig rig(layer_fields({kNumel}), make("compression.feedback = \"none\""));
  double error = 0.0, square = 0.0;
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int64_t i = 0; i < kNumel; ++i) rig.gradient()[i] = static_cast<float>(i % 3 + 1);
    const StepInfo info = step_info(step, 0.3);
    rig.decode(info, {rig.encode(info)});
    for (int64_t i = 0; i < kNumel; ++i) {
      const auto x = static_cast<double>(i % 3 + 1);
      const double off = static_cast<double>(rig.gradient()[i]) - x;
      error += off * off / kSteps;
      square += x * x / kSteps;
    }
  }
  // |x|^2 = 43; a step's error lies in [0, (10/3)^2 · 43]; Hoeffding's bound for 1e-6
  const double far = 43.0 * 100.0 / 9.0 * std::sqrt(std::log(2.0 / 1e-6) / (2.0 * kSteps));
  EXPECT_NEAR(error, (10.0 / 3.0 - 1.0) * square, far);
}

/// A coordinate was sent d / k - 1 steps ago on average.
TEST_P(DrawnCodes, LeavesACoordinateForAsLongAsItsShare) {
  constexpr int64_t kNumel = 100, kSteps = 20'000;
  UnitRig rig(layer_fields({kNumel}), make());
  double sum = 0.0;
  for (int64_t step = 0; step < kSteps; ++step) {
    std::fill_n(rig.gradient(), kNumel, 1.0f);
    const StepInfo info = step_info(step, 0.1);
    rig.decode(info, {rig.encode(info)});
    for (size_t i = 0; i < kNumel; ++i) {
      ASSERT_EQ(rig.gradient()[i] == 0.0f, rig.residual()[i] != 0.0f);
      sum += static_cast<double>(rig.residual()[i]);  // sum of ones: the steps since it was sent
    }
  }
  // 2000 visits of each of at least 10 independent coordinates: the mean's deviation is below 2 %
  EXPECT_NEAR(sum / (kNumel * kSteps), 9.0, 9.0 * 0.15);
}

TEST_P(DrawnCodes, DrawsAnewForEachStepFieldAndRank) {
  std::set<Floats> draws;
  const auto draw = [&](int64_t step, uint64_t key, int rank, const std::string& sharing) {
    std::vector<Field> fields = layer_fields({10'000});
    fields[0].key = key;
    UnitRig rig(fields, make(concat("compression.sharing = \"", sharing, "\"")));
    for (int64_t i = 0; i < 10'000; ++i) rig.gradient()[i] = static_cast<float>(i);
    StepInfo info = step_info(step, 0.01);
    info.rank = rank;
    const PayloadBytes payload = rig.encode(info);
    Floats values(100);
    std::memcpy(values.data(), payload.data(), payload.size());
    draws.insert(values);
    return draws.size();
  };
  EXPECT_EQ(draw(0, 1, 0, "shared"), 1u);
  EXPECT_EQ(draw(0, 1, 2, "shared"), 1u);  // other ranks draw the same
  EXPECT_EQ(draw(1, 1, 0, "shared"), 2u);
  EXPECT_EQ(draw(0, 2, 0, "shared"), 3u);
  EXPECT_EQ(draw(0, 1, 0, "own"), 4u);
  EXPECT_EQ(draw(0, 1, 1, "own"), 5u);
  EXPECT_EQ(draw(1, 1, 1, "own"), 6u);
}

TEST_P(DrawnCodes, SendsWhatOneFieldHoldsHoweverItIsCut) {
  UnitRig whole(layer_fields({500}), make());
  UnitRig cut({joined_field({1, 250, 7, 242}, 0)}, make());
  for (int64_t step = 0; step < 20; ++step) {
    const Floats g = noise(500, step, 0);
    for (size_t i = 0; i < 500; ++i) whole.gradient()[i] = cut.gradient()[i] = g[i];
    const StepInfo info = step_info(step, 0.3);
    const PayloadBytes payload = whole.encode(info);
    ASSERT_EQ(cut.encode(info), payload);
    whole.decode(info, {payload, payload});
    cut.decode(info, {payload, payload});
    ASSERT_EQ(Floats(cut.gradient(), cut.gradient() + 500),
              Floats(whole.gradient(), whole.gradient() + 500));
    ASSERT_EQ(Floats(cut.residual(), cut.residual() + 500),
              Floats(whole.residual(), whole.residual() + 500));
  }
}

TEST_P(DrawnCodes, TakesWhateverIsFinite) {
  for (const float value : {0.0f, 1e-41f, 3e38f, -3e38f}) {
    for (const int64_t numel : {1, 2, 300}) {
      UnitRig rig(layer_fields({numel}), make());
      std::fill_n(rig.gradient(), numel, value);
      rig.decode(step_info(0, 0.5), {rig.encode(step_info(0, 0.5))});
      for (int64_t i = 0; i < numel; ++i)
        ASSERT_EQ(rig.gradient()[i] + rig.residual()[i], value) << numel;
    }
  }
  UnitRig rig(layer_fields({1}), make("compression.values = \"f16\""));
  rig.gradient()[0] = 1e6f;
  rig.decode(step_info(0, 0.5), {rig.encode(step_info(0, 0.5))});
  EXPECT_EQ(rig.gradient()[0], 65504.0f);
  EXPECT_EQ(rig.residual()[0], 1e6f - 65504.0f);
}

TEST_P(DrawnCodes, AddsUpWithoutOverflow) {
  for (const char* values : {"f16", "bf16"}) {
    MethodRig rig(3, layer_fields({40}),
                  [&] { return make(concat("compression.values = \"", values, "\"")); });
    for (int rank = 0; rank < 3; ++rank) std::fill_n(rig.gradient(rank), 40, 3e38f);
    rig.step(step_info(0, 0.1));
    const float most = *std::max_element(rig.gradient(0), rig.gradient(0) + 40);
    EXPECT_TRUE(std::isfinite(most));
    EXPECT_GT(most, std::string(values) == "f16" ? 65000.0f : 3.3e38f);
  }
}

TEST_P(DrawnCodes, KeepsItsResidualIfTheGradientIsNotFinite) {
  UnitRig rig(layer_fields({80}), make());
  std::fill_n(rig.residual(), 80, 3.0f);
  std::fill_n(rig.gradient(), 80, std::numeric_limits<float>::infinity());
  rig.unit.finite = false;
  rig.decode(step_info(0, 0.1), {rig.encode(step_info(0, 0.1))});
  EXPECT_EQ(std::count(rig.gradient(), rig.gradient() + 80, 0.0f), 80);
  EXPECT_EQ(std::count(rig.residual(), rig.residual() + 80, 3.0f), 80);
}

TEST_P(DrawnCodes, WorksOnALateStream) {
  UnitRig now(layer_fields({9000, 400}), make());
  UnitRig later(layer_fields({9000, 400}), make());
  TestContext late({.late = true});
  const Floats g = noise(now.unit.gradient.numel(), 0, 0);
  for (size_t i = 0; i < g.size(); ++i) now.gradient()[i] = later.gradient()[i] = g[i];
  const StepInfo info = step_info(0, 0.1);
  const PayloadBytes payload = now.encode(info);
  Tensor out({static_cast<int64_t>(payload.size())}, DType::u8);
  const Outlet outlet{out.raw(), out.bytes()};
  later.compressor->encode(late.context, later.unit, info, 0, {&outlet, 1});
  const Payload sent{-1, out.raw(), out.bytes()};
  later.compressor->decode(late.context, later.unit, info, 0, {&sent, 1});
  late.stream.synchronize();
  now.decode(info, {payload});
  EXPECT_EQ(PayloadBytes(out.raw(), out.raw() + out.bytes()), payload);
  const int64_t numel = now.unit.gradient.numel();
  EXPECT_TRUE(std::equal(now.gradient(), now.gradient() + numel, later.gradient()));
}

TEST_P(DrawnCodes, SaysWhatIsWrong) {
  UnitRig rig(layer_fields({30}), make());
  EXPECT_EQ(error_of([&] { rig.decode(step_info(0, 0.1), {PayloadBytes(8)}); }),
            "drawn code: the payload of rank 0 has 8 bytes, expected 12");
  EXPECT_EQ(error_of([&] { make("compression.sharing = \"none\""); }),
            "test.toml:1: compression.sharing is 'none', expected shared or own");
  EXPECT_EQ(error_of([&] { make("compression.values = \"i8\""); }),
            "test.toml:1: compression.values is 'i8', expected f32, f16 or bf16");
}

TEST_P(DrawnCodes, LeavesVectorsDense) {
  const Traits traits = make()->traits();
  EXPECT_TRUE(traits.sparse);
  EXPECT_TRUE(traits.dense_1d);
  EXPECT_EQ(traits.momentum, Home::optimizer);
}

}  // namespace
}  // namespace wisp
