#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compression/code.h"
#include "compression/quantize/rounding.h"
#include "tests/support/error_of.h"
#include "tests/support/random_rounding.h"

namespace wisp {
namespace {

/// A scalar model: levels of max |x|, of all workers or of each, rounded at random and summed.
void check_int8_model(const std::string& method, int levels, bool shared) {
  constexpr int kWorkers = 3;
  constexpr int64_t kNumel = 500;
  const std::vector<Field> fields = layer_fields({kNumel});
  MethodRig rig(kWorkers, fields, [&] {
    return make_method(method,
                       shared ? "compression.scaler = \"shared\"" : "compression.scaler = \"own\"");
  });
  for (int64_t step = 0; step < 50; ++step) {
    std::vector<float> scale(kWorkers, 0.0f);
    for (int rank = 0; rank < kWorkers; ++rank) {
      for (int64_t i = 0; i < kNumel; ++i) {
        rig.gradient(rank)[i] = test_gradient(step, rank, i);
        float& mine = scale[shared ? 0 : static_cast<size_t>(rank)];
        mine = std::max(mine, std::fabs(test_gradient(step, rank, i)));
      }
    }
    std::vector<float> result(kNumel, 0.0f);
    for (int64_t i = 0; i < kNumel; ++i) {
      int sum = 0;
      for (int rank = 0; rank < kWorkers; ++rank) {
        const double s = static_cast<double>(scale[shared ? 0 : static_cast<size_t>(rank)]);
        const auto dither = dither_of(info_at(step, rank), fields[0]);
        const float per_unit = static_cast<float>(0x1p23 * levels / s) * 0x1p-23f;
        const int level = model_level(test_gradient(step, rank, i) * per_unit, dither, i);
        sum += level;
        if (!shared)
          result[static_cast<size_t>(i)] +=
              static_cast<float>(level) * static_cast<float>(s / levels);
      }
      if (shared)
        result[static_cast<size_t>(i)] =
            static_cast<float>(sum) * static_cast<float>(static_cast<double>(scale[0]) / levels);
    }
    rig.step(info_at(step));
    for (int rank = 0; rank < kWorkers; ++rank)
      ASSERT_EQ(std::vector<float>(rig.gradient(rank), rig.gradient(rank) + kNumel), result);
  }
}

TEST(Int8, FollowsAScalarModel) {
  check_int8_model("int8", 127, true);
  check_int8_model("int8", 127, false);
  check_int8_model("int4", 7, true);
  check_int8_model("int4", 7, false);
}

TEST(Int8, IsUnbiasedWithItsVariance) {
  for (const char* scaler : {"compression.scaler = \"own\"", "compression.scaler = \"shared\""}) {
    for (const auto& [method, levels] :
         std::vector<std::pair<std::string, float>>{{"int8", 127.0f}, {"int4", 7.0f}}) {
      constexpr size_t kNumel = 100;
      std::vector<float> x;
      for (size_t i = 0; i < kNumel; ++i) x.push_back(test_gradient(0, 0, static_cast<int64_t>(i)));
      x[3] = 0.25f;
      check_unbiased(method, scaler, x, std::vector<float>(kNumel, 0.25f / levels));
      // the worst x has one number at the scale, the rest at s² / n (sqrt(1 + n / s²) - 1) levels
      const double n = kNumel - 1;
      const auto s = static_cast<double>(levels);
      const double worst = s * s / n * (std::sqrt(1.0 + n / (s * s)) - 1.0);
      x.assign(kNumel, static_cast<float>(worst));
      x[0] = levels;
      const RoundingErrors errors =
          check_unbiased(method, scaler, x, std::vector<float>(kNumel, 1.0f));
      EXPECT_NEAR(errors.ratio, (std::sqrt(1.0 + n / (s * s)) - 1.0) / 2.0, errors.slack);
    }
  }
}

/// The result of `method` for the gradient x of one worker.
std::vector<float> result_of(const std::string& method, const std::string& toml,
                             const std::vector<float>& x) {
  MethodRig rig(1, layer_fields({static_cast<int64_t>(x.size())}),
                [&] { return make_method(method, toml); });
  std::copy(x.begin(), x.end(), rig.gradient(0));
  rig.step(info_at(0));
  return {rig.gradient(0), rig.gradient(0) + x.size()};
}

TEST(Int8, HasTheDocumentedBytes) {
  const std::vector<float> x = {7, -3, 0, 1, 2};
  UnitRig own(layer_fields({5}), make_method("int4", "compression.scaler = \"own\""));
  std::copy(x.begin(), x.end(), own.gradient());
  EXPECT_EQ(hex(own.encode(info_at(0))),
            "0000e040"
            "d7"
            "10"
            "02");
  MethodRig shared(3, layer_fields({5}),
                   [] { return make_method("int4", "compression.scaler = \"shared\""); });
  for (int rank = 0; rank < 3; ++rank) std::copy(x.begin(), x.end(), shared.gradient(rank));
  shared.step(info_at(0));
  EXPECT_EQ(hex(shared.sent(0, 0)), "0000e040");
  // lanes of 6 bits: 7 + (-3 << 6) + (1 << 18) + (2 << 24)
  EXPECT_EQ(hex(shared.sent(0, 1)), "47ff0302");
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(shared.gradient(0)[i], 3.0f * x[i]);
}

TEST(Int8, SendsWhatTheLawSays) {
  std::vector<Field> fields = layer_fields({1000, 7});
  fields.push_back(joined_field({65, 1}));
  UnitSpec spec{fields, 1073};
  const auto message = [&](const std::string& method, const char* scaler, int workers) {
    const auto compressor = make_method(method, concat("compression.scaler = \"", scaler, "\""));
    const StepInfo info = info_at(0, 0, workers);
    return compressor->message(spec, info, compressor->rounds(spec, info) - 1);
  };
  EXPECT_EQ(message("int8", "own", 3).bytes, 4 * 3 + 1000 + 7 + 65 + 1);
  EXPECT_EQ(message("int4", "own", 3).bytes, 4 * 3 + 500 + 4 + 33 + 1);
  EXPECT_EQ(message("int8", "own", 3).kind, Collective::all_gather);
  const Message lanes = message("int8", "shared", 4);  // lanes of 10 bits, 3 in a word
  EXPECT_EQ(lanes.bytes, 4 * (334 + 3 + 22 + 1));
  EXPECT_EQ(lanes.kind, Collective::all_reduce);
  EXPECT_EQ(lanes.dtype, DType::u32);
  EXPECT_EQ(lanes.op, ReduceOp::sum);
  EXPECT_EQ(message("int4", "shared", 4).bytes, 4 * (200 + 2 + 13 + 1));
  // auto takes the fewer bits: 2 (N - 1) / N · 32 / each, or (N - 1) · width
  for (const auto& [method, first] :
       std::vector<std::pair<std::string, int>>{{"int8", 3}, {"int4", 4}, {"terngrad", 5}}) {
    for (int workers = 1; workers < 9; ++workers)
      EXPECT_EQ(message(method, "auto", workers).kind,
                workers < first ? Collective::all_gather : Collective::all_reduce)
          << method << " " << workers;
  }
  const auto compressor = make_method("int8", "compression.scaler = \"shared\"");
  const Message agreement = compressor->message(spec, info_at(0, 0, 4), 0);
  EXPECT_EQ(agreement.bytes, 4 * 3);
  EXPECT_EQ(agreement.op, ReduceOp::max);
}

TEST(Int8, TakesAnyFiniteNumbers) {
  const float huge = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const char* scaler : {"compression.scaler = \"own\"", "compression.scaler = \"shared\""}) {
    for (const char* method : {"int8", "int4", "terngrad"}) {
      using V = std::vector<float>;
      EXPECT_EQ(result_of(method, scaler, V(70, 0.0f)), V(70, 0.0f));
      EXPECT_EQ(result_of(method, scaler, V(70, -0.5f)), V(70, -0.5f))
          << method;  // all at the scale
      EXPECT_EQ(result_of(method, scaler, {3.0f}), V{3.0f});
      EXPECT_EQ(result_of(method, scaler, {tiny, -tiny, 0x1p-91f}), V(3, 0.0f));
      const V least = result_of(method, scaler, {0x1p-90f, 0.0f});
      EXPECT_NEAR(least[0], 0x1p-90f, 0x1p-112f);  // rounding of scale / levels
      const V large = result_of(method, scaler, V(3, huge));
      for (const float value : large) EXPECT_NEAR(value, 0x1p126f, 0x1p104f);  // saturates
    }
  }
}

TEST(Int8, LosesNothingWithFeedback) {
  constexpr int kWorkers = 3;
  for (const char* scaler : {"own", "shared"}) {
    for (const char* method : {"int8", "int4"}) {
      MethodRig rig(kWorkers, layer_fields({200}), [&] {
        return make_method(method, concat("compression.scaler = \"", scaler,
                                          "\"\ncompression.rounding = \"nearest\"\n"
                                          "compression.feedback = \"ef\""));
      });
      std::vector<double> given(200, 0.0), sent(200, 0.0);
      for (int64_t step = 0; step < 50; ++step) {
        for (int rank = 0; rank < kWorkers; ++rank) {
          for (int64_t i = 0; i < 200; ++i) {
            rig.gradient(rank)[i] = test_gradient(step, rank, i);
            given[static_cast<size_t>(i)] += static_cast<double>(rig.gradient(rank)[i]);
          }
        }
        rig.step(info_at(step));
        for (size_t i = 0; i < 200; ++i) sent[i] += static_cast<double>(rig.gradient(0)[i]);
      }
      for (size_t i = 0; i < 200; ++i) {
        for (int rank = 0; rank < kWorkers; ++rank)
          sent[i] += static_cast<double>(rig.state(rank, "residual").data<float>()[i]);
        EXPECT_NEAR(sent[i], given[i], 2e-6);  // f32 rounding of 150 residuals below 0.2
      }
    }
  }
}

TEST(Int8, RefusesFeedbackWhereItWouldDiverge) {
  const auto state_of = [](const std::string& toml, int64_t numel) {
    const std::vector<Field> fields = layer_fields({numel});
    return make_method("int8", "compression.feedback = \"ef\"\n" + toml)
        ->state({fields, numel}, 1)
        .size();
  };
  // (sqrt(1 + (n - 1) / 127²) - 1) / 2 < 1 up to n = 8 · 127² + 1
  EXPECT_EQ(state_of("", 8 * 127 * 127), 1u);
  EXPECT_THROW(state_of("", 8 * 127 * 127 + 1), Error);
  EXPECT_EQ(state_of("compression.rounding = \"nearest\"", 1'000'000), 1u);
}

TEST(Int8, SendsZerosIfTheGradientIsNotFinite) {
  for (const char* scaler : {"own", "shared"}) {
    MethodRig rig(2, layer_fields({70}), [&] {
      return make_method(
          "int8", concat("compression.scaler = \"", scaler, "\"\ncompression.feedback = \"ef\""));
    });
    for (int64_t i = 0; i < 70; ++i) {
      rig.gradient(0)[i] = std::nanf("");
      rig.gradient(1)[i] = i == 0 ? 127.0f : 1.0f;
    }
    rig.state(0, "residual").data<float>()[5] = 0.25f;
    rig.unit(0).finite = false;
    rig.step(info_at(0));
    for (int64_t i = 0; i < 70; ++i) EXPECT_EQ(rig.gradient(0)[i], i == 0 ? 127.0f : 1.0f);
    EXPECT_EQ(rig.state(0, "residual").data<float>()[5], 0.25f);
  }
}

TEST(Int8, DependsOnPositionsInTheField) {
  for (const char* toml : {"compression.scaler = \"own\"", "compression.scaler = \"shared\""}) {
    for (const char* method : {"int8", "terngrad"}) {
      MethodRig whole(2, layer_fields({900}), [&] { return make_method(method, toml); });
      MethodRig cut(2, {joined_field({70, 1, 829})}, [&] { return make_method(method, toml); });
      const std::vector<Slice> slices = joined_field({70, 1, 829}).slices;
      for (int rank = 0; rank < 2; ++rank) {
        int64_t i = 0;
        for (const Slice& slice : slices)
          for (int64_t j = 0; j < slice.numel; ++j, ++i)  // integers: moments are exact
            cut.gradient(rank)[slice.offset + j] = whole.gradient(rank)[i] =
                static_cast<float>((i * 37 + rank * 11) % 101 - 50);
      }
      whole.step(info_at(4));
      cut.step(info_at(4));
      int64_t i = 0;
      for (const Slice& slice : slices)
        for (int64_t j = 0; j < slice.numel; ++j, ++i)
          ASSERT_EQ(cut.gradient(1)[slice.offset + j], whole.gradient(1)[i]) << method << i;
    }
  }
}

TEST(Int8, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(error_of([] { make_method("int8", "compression.scaler = \"both\""); }),
            "test.toml:1: compression.scaler is 'both', expected auto, shared or own");
  EXPECT_EQ(error_of([] { make_method("int4", "compression.rounding = \"up\""); }),
            "test.toml:1: compression.rounding is 'up', expected stochastic or nearest");
  EXPECT_EQ(
      error_of([] { make_method("int8", "compression.scaler = \"shared\"", {.alone = true}); }),
      "test.toml:1: compression.scaler is 'shared', but neighbours in gossip cannot agree on a "
      "scale; expected auto or own");
  const auto alone = make_method("int8", "", {.workers = 8, .alone = true});
  const std::vector<Field> fields = layer_fields({70});
  EXPECT_EQ(alone->rounds({fields, 70}, info_at(0, 0, 8)), 1);
  UnitRig rig(layer_fields({3}), make_method("int4", ""));
  EXPECT_EQ(error_of([&] { rig.decode(info_at(0), {PayloadBytes(5)}); }),
            "int4: the payload of rank 0 has 5 bytes, expected 6");
  // a NaN scale gives zeros
  PayloadBytes payload(6, std::byte{0xff});
  rig.decode(info_at(0), {payload});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.gradient()[i], 0.0f);
}

}  // namespace
}  // namespace wisp
