#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "compression/quantize/rounding.h"
#include "core/loops/parallel_teams.h"
#include "tests/support/error_of.h"
#include "tests/support/random_rounding.h"

namespace wisp {
namespace {

std::string qsgd_options(const char* wire, const char* norm, int levels, int group) {
  return concat("compression.wire = \"", wire, "\"\ncompression.norm = \"", norm,
                "\"\ncompression.levels = ", levels, "\ncompression.group = ", group);
}

/// Adds the result of Alistarh et al. 2017 for [begin, end) of a field to `sum`.
void qsgd_model(std::vector<float>& sum, const std::vector<float>& v, size_t begin, size_t end,
                const char* norm, int levels, const Dither& dither) {
  double squares = 0.0;
  float largest = 0.0f;
  for (size_t i = begin; i < end; ++i) {
    squares += static_cast<double>(v[i]) * static_cast<double>(v[i]);
    largest = std::max(largest, std::fabs(v[i]));
  }
  const float scale = std::string(norm) == "max" ? largest : static_cast<float>(std::sqrt(squares));
  const float per_unit = static_cast<float>(0x1p23 * levels / static_cast<double>(scale));
  const float step = static_cast<float>(static_cast<double>(scale) / levels);
  for (size_t i = begin; i < end; ++i) {
    const int xi = model_level(v[i] * per_unit * 0x1p-23f, dither, static_cast<int64_t>(i));
    sum[i] += static_cast<float>(xi) * step;
  }
}

TEST(Qsgd, FollowsAScalarModelOfThePaper) {
  constexpr int64_t kNumel = 700;
  for (const char* wire : {"fixed", "elias"}) {
    for (const char* norm : {"max", "l2"}) {
      for (const auto& [levels, group] :
           std::vector<std::pair<int, int>>{{7, 512}, {1, 64}, {127, 128}, {20, 0}}) {
        const std::string chosen = qsgd_options(wire, norm, levels, group);
        SCOPED_TRACE(chosen);
        const std::vector<Field> fields = layer_fields({kNumel});
        MethodRig rig(3, fields, [&] { return make_method("qsgd", chosen); });
        for (int64_t step = 0; step < 50; ++step) {
          std::vector<float> sum(kNumel, 0.0f);
          for (int rank = 0; rank < 3; ++rank) {
            std::vector<float> v(kNumel);
            for (size_t i = 0; i < kNumel; ++i) {
              // multiples of 2^-8: squares add up exactly in any order
              v[i] = std::round(test_gradient(step, rank, static_cast<int64_t>(i)) * 2048.0f) / 256;
              rig.gradient(rank)[i] = v[i];
            }
            const size_t size = group > 0 ? static_cast<size_t>(group) : v.size();
            for (size_t begin = 0; begin < v.size(); begin += size)
              qsgd_model(sum, v, begin, std::min(v.size(), begin + size), norm, levels,
                         dither_of(info_at(step, rank), fields[0]));
          }
          rig.step(info_at(step));
          for (int rank = 0; rank < 3; ++rank)
            ASSERT_EQ(std::vector<float>(rig.gradient(rank), rig.gradient(rank) + kNumel), sum);
        }
      }
    }
  }
}

TEST(Qsgd, IsUnbiasedWithItsVariance) {
  constexpr size_t kNumel = 64;
  std::vector<float> x;
  for (size_t i = 0; i < kNumel; ++i) x.push_back(test_gradient(0, 0, static_cast<int64_t>(i)));
  double squares = 0.0;
  float largest = 0.0f;
  for (const float v : x) {
    squares += static_cast<double>(v) * static_cast<double>(v);
    largest = std::max(largest, std::fabs(v));
  }
  for (const char* wire : {"fixed", "elias"}) {
    for (const int levels : {1, 3, 7}) {
      const auto s = static_cast<float>(levels);
      const auto l2 = static_cast<float>(std::sqrt(squares));
      const RoundingErrors of_l2 = check_unbiased("qsgd", qsgd_options(wire, "l2", levels, 64), x,
                                                  std::vector<float>(kNumel, l2 / s));
      EXPECT_LE(of_l2.ratio, std::min(64.0 / (levels * levels), 8.0 / levels) + of_l2.slack);
      const RoundingErrors of_max = check_unbiased("qsgd", qsgd_options(wire, "max", levels, 64), x,
                                                   std::vector<float>(kNumel, largest / s));
      EXPECT_LE(of_max.ratio,
                (std::sqrt(1.0 + 63.0 / (levels * levels)) - 1.0) / 2.0 + of_max.slack);
    }
  }
}

TEST(Qsgd, HasTheDocumentedBytes) {
  const std::vector<float> x = {7, -3, 0, 1};
  const std::vector<std::pair<std::string, std::string>> cases = {
      {qsgd_options("fixed", "max", 7, 64),
       "0000e040"
       "d7"
       "10"},
      // 5 bits: levels 14, -6, 0 and 2 of 14, in planes of 4 bits and of 1
      {qsgd_options("fixed", "max", 14, 0),
       "0000e040"
       "ae"
       "20"
       "02"},
      // 0 0 101110, 0 1 110, 100 0 0, then ones
      {qsgd_options("elias", "max", 7, 64),
       "0000e040"
       "03000000"
       "2e743f"}};
  for (const auto& [toml, bytes] : cases) {
    UnitRig rig(layer_fields({4}), make_method("qsgd", toml));
    std::copy(x.begin(), x.end(), rig.gradient());
    const PayloadBytes sent = rig.encode(info_at(0));
    EXPECT_EQ(hex(sent), bytes) << toml;
    rig.decode(info_at(0), {sent, sent});
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(rig.gradient()[i], 2.0f * x[i]);
  }
  // L2: |(3, 4)| = 5
  UnitRig rig(layer_fields({2}), make_method("qsgd", qsgd_options("fixed", "l2", 5, 64)));
  rig.gradient()[0] = 3.0f;
  rig.gradient()[1] = -4.0f;
  EXPECT_EQ(hex(rig.encode(info_at(0))),
            "0000a040"
            "c3");
}

TEST(Qsgd, SendsWhatTheLawSays) {
  std::vector<Field> fields = layer_fields({1000, 7});
  fields.push_back(joined_field({65, 1}));
  const UnitSpec spec{fields, 1073};
  const auto bytes = [&](const std::string& toml) {
    return make_method("qsgd", toml)->message(spec, info_at(0), 0).bytes;
  };
  EXPECT_EQ(bytes(""), 4 * (2 + 1 + 1 + 1) + 500 + 4 + 33 + 1);
  EXPECT_EQ(bytes(qsgd_options("fixed", "max", 7, 64)), 4 * (16 + 1 + 2 + 1) + 500 + 4 + 33 + 1);
  EXPECT_EQ(bytes(qsgd_options("fixed", "max", 7, 0)), 4 * 3 + 500 + 4 + 33 + 1);
  EXPECT_EQ(bytes(qsgd_options("fixed", "max", 1, 0)), 4 * 3 + 250 + 2 + 17 + 1);
  EXPECT_EQ(bytes(qsgd_options("fixed", "l2", 127, 0)), 4 * 3 + 1073);
  EXPECT_EQ(bytes(qsgd_options("fixed", "l2", 32, 0)),
            4 * 3 + (500 + 250 + 125) + (4 + 2 + 1) + (33 + 17 + 9) + 3);
  // Elias: norms, ends, and min(n (2 + |omega(s)|), 3 n + 2 s²) bits a chunk
  EXPECT_EQ(bytes(qsgd_options("elias", "max", 7, 512)), 4 * 5 + 4 * 5 + 512 + 488 + 7 + 65 + 1);
  EXPECT_EQ(bytes(qsgd_options("elias", "l2", 7, 512)),
            4 * 5 + 4 * 5 + (1634 + 7) / 8 + (1562 + 7) / 8 + 7 + (293 + 7) / 8 + 1);
  const auto method = make_method("qsgd", qsgd_options("elias", "l2", 7, 512));
  EXPECT_TRUE(method->message(spec, info_at(0), 0).variable);
  EXPECT_TRUE(method->traits().dense_1d);
}

/// Every payload fits the capacity of message() and decodes to the values of the fixed wire.
TEST(Qsgd, EliasNeverExceedsItsCapacity) {
  for (const char* norm : {"max", "l2"}) {
    for (const int levels : {1, 2, 4, 8, 16, 127}) {
      for (int shape = 0; shape < 6; ++shape) {
        UnitRig fixed(layer_fields({513}),
                      make_method("qsgd", qsgd_options("fixed", norm, levels, 64)));
        UnitRig elias(layer_fields({513}),
                      make_method("qsgd", qsgd_options("elias", norm, levels, 64)));
        for (int64_t i = 0; i < 513; ++i) {
          const float noise = test_gradient(shape, 0, i);
          const float x[] = {1.0f,
                             noise,
                             noise > 0 ? 1.0f : -1.0f,
                             i % 64 == 63 ? 5.0f : 0.0f,
                             std::numeric_limits<float>::max(),
                             0x1p-85f * noise};
          fixed.gradient()[i] = elias.gradient()[i] = x[shape];
        }
        const StepInfo info = info_at(shape);
        const PayloadBytes sent = elias.encode(info);
        ASSERT_LE(sent.size(),
                  static_cast<size_t>(elias.compressor->message(elias.unit.spec, info, 0).bytes));
        fixed.decode(info, {fixed.encode(info)});
        elias.decode(info, {sent});
        for (int64_t i = 0; i < 513; ++i) ASSERT_EQ(elias.gradient()[i], fixed.gradient()[i]);
      }
    }
  }
}

/// Chunks across several slices, more than a team takes, in any order of its threads.
TEST(Qsgd, EliasIsOneStreamOfAllSlices) {
  const std::vector<Field> fields = two_fields(70'000, 1, 513);
  for (const int group : {64, 0}) {
    UnitRig fixed(fields, make_method("qsgd", qsgd_options("fixed", "max", 7, group)));
    UnitRig elias(fields, make_method("qsgd", qsgd_options("elias", "max", 7, group)));
    const int64_t numel = fixed.unit.gradient.numel();
    const StepInfo info = info_at(0);
    PayloadBytes sent;
    for (const uint32_t seed : {0u, 1u, 2u}) {
      for (int64_t i = 0; i < numel; ++i)
        fixed.gradient()[i] = elias.gradient()[i] = test_gradient(0, 0, i);
      const ShuffledTeams shuffled(seed);
      const PayloadBytes here = elias.encode(info);
      if (seed == 0) sent = here;
      EXPECT_EQ(here, sent);
      fixed.decode(info, {fixed.encode(info)});
      elias.decode(info, {sent});
      for (int64_t i = 0; i < numel; ++i) ASSERT_EQ(elias.gradient()[i], fixed.gradient()[i]) << i;
    }
  }
}

TEST(Qsgd, TakesAnyFiniteNumbers) {
  using V = std::vector<float>;
  const float huge = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const char* wire : {"fixed", "elias"}) {
    for (const char* norm : {"max", "l2"}) {
      for (const int group : {64, 0}) {
        const std::string toml = qsgd_options(wire, norm, 7, group);
        SCOPED_TRACE(toml);
        EXPECT_EQ(decoded("qsgd", toml, V(70, 0.0f)), V(70, 0.0f));
        EXPECT_EQ(decoded("qsgd", toml, {-7.0f}), V{-7.0f});  // the value is its own norm
        EXPECT_EQ(decoded("qsgd", toml, {tiny, -tiny, 0x1p-92f}), V(3, 0.0f));
        for (const float value : decoded("qsgd", toml, V(70, -huge))) {
          EXPECT_TRUE(std::isfinite(value));
          EXPECT_LE(value, 0.0f);
        }
        EXPECT_NEAR(decoded("qsgd", toml, {huge})[0], 0x1p126f, 0x1p104f);
      }
    }
  }
  EXPECT_EQ(decoded("qsgd", "", V(70, -7.0f)), V(70, -7.0f));  // all at the maximum
}

TEST(Qsgd, FeedsBackWhereThatConverges) {
  const std::vector<Field> fields = layer_fields({600});
  EXPECT_EQ(error_of([&] {
              make_method("qsgd", "compression.feedback = \"ef\"")->state({fields, 600}, 1);
            }).substr(0, 68),
            "qsgd: error feedback diverges with this code: the error of its unbia");
  for (const char* wire : {"fixed", "elias"}) {
    UnitRig rig(fields, make_method("qsgd", "compression.feedback = \"ef\"\n" +
                                                qsgd_options(wire, "max", 127, 512)));
    std::vector<double> given(600, 0.0), sent(600, 0.0);
    for (int64_t step = 0; step < 50; ++step) {
      for (size_t i = 0; i < given.size(); ++i) {
        rig.gradient()[i] = test_gradient(step, 0, static_cast<int64_t>(i));
        given[i] += static_cast<double>(rig.gradient()[i]);
      }
      rig.decode(info_at(step), {rig.encode(info_at(step))});
      for (size_t i = 0; i < given.size(); ++i) sent[i] += static_cast<double>(rig.gradient()[i]);
    }
    for (size_t i = 0; i < given.size(); ++i)  // f32 rounding of 50 residuals
      EXPECT_NEAR(sent[i] + static_cast<double>(rig.residual()[i]), given[i], 1e-6);
    const float kept = rig.residual()[3];
    rig.gradient()[3] = std::nanf("");
    rig.unit.finite = false;
    rig.decode(info_at(50), {rig.encode(info_at(50))});
    for (size_t i = 0; i < given.size(); ++i) EXPECT_EQ(rig.gradient()[i], 0.0f);
    EXPECT_EQ(rig.residual()[3], kept);
  }
}

PayloadBytes with_stream(const std::vector<int>& bytes, uint32_t end) {
  PayloadBytes payload(8 + bytes.size());
  const float norm = 7.0f;
  std::memcpy(payload.data(), &norm, 4);
  std::memcpy(payload.data() + 4, &end, 4);
  for (size_t i = 0; i < bytes.size(); ++i) payload[8 + i] = static_cast<std::byte>(bytes[i]);
  return payload;
}

TEST(Qsgd, RefusesWhatIsNotWellFormed) {
  for (const auto& [key, message] : std::vector<std::pair<std::string, std::string>>{
           {"levels = 0", "compression.levels is 0, expected 1 to 127"},
           {"levels = 128", "compression.levels is 128, expected 1 to 127"},
           {"group = 100",
            "compression.group is 100, expected a multiple of 64 up to 1048576, or "
            "0"},
           {"norm = \"l1\"", "compression.norm is 'l1', expected max or l2"},
           {"wire = \"zip\"", "compression.wire is 'zip', expected fixed or elias"}}) {
    const std::string toml = "compression." + key;
    EXPECT_EQ(error_of([&] { make_method("qsgd", toml); }), "test.toml:1: " + message);
  }

  UnitRig fixed(layer_fields({3}), make_method("qsgd", ""));
  EXPECT_EQ(error_of([&] { fixed.decode(info_at(0), {PayloadBytes(5)}); }),
            "qsgd: the payload of rank 0 has 5 bytes, expected 6");
  fixed.decode(info_at(0), {PayloadBytes(6, std::byte{0xff})});  // a NaN norm gives zeros
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fixed.gradient()[i], 0.0f);

  // level -16 of 8, with an infinite norm
  UnitRig wide(layer_fields({1}), make_method("qsgd", qsgd_options("fixed", "max", 8, 0)));
  wide.decode(info_at(0), {{std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x7f},
                            std::byte{0}, std::byte{1}}});
  EXPECT_EQ(wide.gradient()[0], -0x1p127f);

  UnitRig elias(layer_fields({3}), make_method("qsgd", qsgd_options("elias", "max", 7, 64)));
  const auto error = [&](const PayloadBytes& payload) {
    return error_of([&] { elias.decode(info_at(0), {payload}); });
  };
  EXPECT_EQ(error(PayloadBytes(3)), "qsgd: the payload of rank 0 has 3 bytes, expected at least 4");
  EXPECT_EQ(error(PayloadBytes(7)),
            "elias wire: the stream of rank 0 has 3 bytes, expected 4 to 7");
  const std::string no_sequence =
      "the payload of rank 0: field 0 has an invalid sequence of codes in chunk 0";
  const std::string end = "the payload of rank 0: field 0 ends at byte ";
  EXPECT_EQ(error(with_stream({0x2e}, 9)), end + "17, expected the payload's last");
  EXPECT_EQ(error(with_stream({0b0000'0000}, 1)), no_sequence);               // no ones at the end
  EXPECT_EQ(error(with_stream({0b1010'0000}, 1)), no_sequence);               // position 3 of 3
  EXPECT_EQ(error(with_stream({0b0011'1000, 0b0111'1111}, 2)), no_sequence);  // level 8
  EXPECT_EQ(error(with_stream({0b0001'1111, 0xff}, 1)), end + "9, expected the payload's last");
  elias.decode(info_at(0), {with_stream({0b0001'1111}, 1)});
  EXPECT_EQ(elias.gradient()[0], 1.0f);
}

}  // namespace
}  // namespace wisp
