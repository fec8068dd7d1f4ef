#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "compression/code.h"
#include "core/cpu/reference_fft.h"
#include "core/random.h"
#include "tests/support/counting_backend.h"
#include "tests/support/error_of.h"
#include "tests/support/method_rig.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

constexpr const char* kWidest = "compression.theta = 0.0\ncompression.range_bits = 32";

StepInfo fft_info(int64_t step, double epoch = 0.0) {
  StepInfo info;
  info.step = info.applied = step;
  info.epoch = epoch;
  return info;
}

float fft_noise(int64_t step, int rank, int64_t i) {
  return Philox(6, static_cast<uint64_t>(step), static_cast<uint64_t>(rank))
             .uniform(static_cast<uint64_t>(i)) -
         0.5f;
}

// ---- a scalar model of the reconstruction

using Spectrum = std::vector<std::complex<float>>;

/// `x` > 0, rounded to the nearest number of m mantissa bits.
float rounded(float x, int m) {
  int exponent = 0;
  const float part = std::frexp(x, &exponent);
  return std::ldexp(std::floor(std::ldexp(part, m + 1) + 0.5f), exponent - m - 1);
}

/// The range-based float: eps is found by counting down 2^(N-1) - 1 numbers from the largest.
float range_float(float x, int bits, int m, float max) {
  float eps = rounded(max, m);
  for (int code = (1 << (bits - 1)) - 1; code > 1; --code) {
    int exponent = 0;
    const bool power_of_two = std::frexp(eps, &exponent) == 0.5f;
    eps -= std::ldexp(1.0f, exponent - m - (power_of_two ? 2 : 1));
  }
  const float size = std::fabs(x);
  if (size < eps) return std::copysign(size < eps / 2 ? 0.0f : eps, x);
  return std::copysign(std::min(rounded(size, m), rounded(max, m)), x);
}

Spectrum forward(const std::vector<float>& x, int64_t n) {
  std::vector<float> padded = x;
  padded.resize(static_cast<size_t>(n));
  Spectrum spectrum(static_cast<size_t>(n / 2 + 1));
  ReferenceFft<float>(n).forward(padded.data(), reinterpret_cast<float*>(spectrum.data()));
  return spectrum;
}

std::vector<float> inverse(const Spectrum& spectrum, int64_t n, size_t numel) {
  std::vector<float> x(static_cast<size_t>(n));
  ReferenceFft<float>(n).inverse(reinterpret_cast<const float*>(spectrum.data()), x.data());
  for (float& value : x) value *= 1.0f / static_cast<float>(n);
  x.resize(numel);
  return x;
}

/// The share 1 - theta of the spectrum with the largest magnitudes, as range floats.
Spectrum thinned(Spectrum spectrum, double theta, int bits, int m) {
  float max = 0.0f;
  std::vector<size_t> order(spectrum.size());
  std::iota(order.begin(), order.end(), 0);
  for (const auto& value : spectrum)
    max = std::max({max, std::fabs(value.real()), std::fabs(value.imag())});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::abs(spectrum[a]) > std::abs(spectrum[b]); });
  const auto kept =
      static_cast<size_t>(std::ceil((1.0 - theta) * static_cast<double>(order.size()) - 1e-9));
  for (size_t j = 0; j < order.size(); ++j) {
    auto& value = spectrum[order[j]];
    value = j < kept ? std::complex<float>(range_float(value.real(), bits, m, max),
                                           range_float(value.imag(), bits, m, max))
                     : 0.0f;
  }
  return spectrum;
}

TEST(Fft, FollowsAScalarModelOfTheReconstruction) {
  constexpr int kWorkers = 3;
  struct Case {
    int64_t numel, padded;
    const char* feedback;
  };
  for (const Case& c : {Case{256, 256, "none"}, Case{251, 256, "ef"}, Case{509, 512, "none"}}) {
    SCOPED_TRACE(c.numel);
    MethodRig rig(kWorkers, layer_fields({c.numel}), [&] {
      return make_method("fft", concat("compression.feedback = '", c.feedback, "'"));
    });
    std::vector<std::vector<float>> residual(
        kWorkers, std::vector<float>(static_cast<size_t>(c.numel), 0.0f));
    for (int64_t step = 0; step < 50; ++step) {
      Spectrum sum(static_cast<size_t>(c.padded / 2 + 1));
      for (int rank = 0; rank < kWorkers; ++rank) {
        std::vector<float>& e = residual[static_cast<size_t>(rank)];
        for (int64_t i = 0; i < c.numel; ++i) {
          rig.gradient(rank)[i] = fft_noise(step, rank, i);
          e[static_cast<size_t>(i)] += rig.gradient(rank)[i];
        }
        const Spectrum sent = thinned(forward(e, c.padded), 0.85, 10, 3);
        for (size_t k = 0; k < sum.size(); ++k) sum[k] += sent[k];
        const std::vector<float> own = inverse(sent, c.padded, e.size());
        for (size_t i = 0; i < e.size(); ++i)
          e[i] = c.feedback == std::string("ef") ? e[i] - own[i] : 0.0f;
      }
      rig.step(fft_info(step));
      const std::vector<float> expected = inverse(sum, c.padded, static_cast<size_t>(c.numel));
      for (int rank = 0; rank < kWorkers; ++rank) {
        // exact: the same operations in the same order, up to powers of two
        ASSERT_EQ(std::vector<float>(rig.gradient(rank), rig.gradient(rank) + c.numel), expected)
            << step;
        if (c.feedback != std::string("ef")) continue;
        const float* kept = rig.state(rank, "residual").data<float>();
        ASSERT_EQ(std::vector<float>(kept, kept + c.numel), residual[static_cast<size_t>(rank)]);
      }
    }
  }
}

// ---- laws

double squared(const float* a, const float* b, int64_t n) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    const double apart = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += apart * apart;
  }
  return sum;
}

TEST(Fft, IsTheIdentityAtItsWidest) {
  for (const int64_t numel : {1, 2, 7, 1000, 4099}) {
    UnitRig rig(layer_fields({numel}), make_method("fft", kWidest));
    std::vector<float> given;
    for (int64_t i = 0; i < numel; ++i) given.push_back(fft_noise(0, 0, i));
    std::copy(given.begin(), given.end(), rig.gradient());
    rig.decode(fft_info(0), {rig.encode(fft_info(0))});
    // f32 rounds at 6e-8; two transforms of twelve stages
    for (int64_t i = 0; i < numel; ++i)
      EXPECT_NEAR(rig.gradient()[i], given[static_cast<size_t>(i)], 5e-7) << numel;
  }
}

/// Parseval: the gradient loses the energy of the dropped frequencies, divided by n.
TEST(Fft, LosesTheEnergyThatItDrops) {
  constexpr int64_t kNumel = 1000;
  for (const double theta : {0.3, 0.85, 0.99}) {
    UnitRig rig(
        layer_fields({kNumel}),
        make_method("fft", concat("compression.range_bits = 32\ncompression.theta = ", theta)));
    std::vector<float> given;
    for (int64_t i = 0; i < kNumel; ++i) given.push_back(fft_noise(1, 0, i));
    std::copy(given.begin(), given.end(), rig.gradient());
    rig.decode(fft_info(0), {rig.encode(fft_info(0))});

    std::vector<std::complex<double>> spectrum(kNumel / 2 + 1);
    ReferenceFft<double>(kNumel).forward(std::vector<double>(given.begin(), given.end()).data(),
                                         reinterpret_cast<double*>(spectrum.data()));
    std::vector<std::pair<double, double>> order;  // magnitude, energy of k and n - k
    for (size_t k = 0; k < spectrum.size(); ++k)
      order.emplace_back(std::norm(spectrum[k]),
                         std::norm(spectrum[k]) * (k == 0 || 2 * k == kNumel ? 1.0 : 2.0));
    std::sort(order.begin(), order.end());
    const auto kept = static_cast<size_t>(std::ceil((1.0 - theta) * 501.0));
    double dropped = 0.0;
    for (size_t j = 0; j + kept < order.size(); ++j) dropped += order[j].second;
    EXPECT_NEAR(squared(rig.gradient(), given.data(), kNumel) / (dropped / kNumel), 1.0, 1e-5);
  }
}

TEST(Fft, SendsWhatTheLawSays) {
  const auto bytes = [](const std::vector<int64_t>& sizes, const std::string& options,
                        double epoch = 0.0) {
    UnitRig rig(layer_fields(sizes), make_method("fft", options));
    for (int64_t i = 0; i < rig.unit.gradient.numel(); ++i) rig.gradient()[i] = fft_noise(2, 0, i);
    const auto sent = static_cast<int64_t>(rig.encode(fft_info(0, epoch)).size());
    const Message message = rig.compressor->message(rig.unit.spec, fft_info(0, epoch), 0);
    EXPECT_EQ(message.bytes, sent);
    EXPECT_EQ(message.kind, Collective::all_gather);
    EXPECT_FALSE(message.variable);
    return sent;
  };
  // 1000 elements: 501 coefficients, 16 words of bitmap, 76 kept, 1520 bits of codes
  EXPECT_EQ(bytes({1000}, ""), 4 * (1 + 16 + 48));
  // 7 is padded to 8: 5 coefficients, 1 kept, 20 bits; 1 is padded to 2: 2 coefficients, 1 kept
  EXPECT_EQ(bytes({1000, 7, 1}, ""), 4 * (65 + 3 + 3));
  EXPECT_EQ(bytes({1000}, "compression.theta = 0.5\ncompression.range_bits = 8"),
            4 * (1 + 16 + 126));  // 251 kept, 4016 bits
  EXPECT_EQ(bytes({1000}, "compression.theta_decay = 0.5", 1.9),
            4 * (1 + 16 + 181));  // theta 0.425: 289 kept, 5780 bits
  EXPECT_NEAR(4.0 * (1 << 20) / static_cast<double>(bytes({1 << 20}, "")), 16.0, 0.001);
}

TEST(Fft, AddsSpectraBeforeOneInverseTransform) {
  TestContext test;
  CountingBackend backend(*test.backend);
  Context context{.stream = test.stream, .backend = backend, .pool = test.pool};
  Config config = Config::from_text("", "test.toml");
  const auto code = CodeRegistry::instance().find("code", "fft").make(config, {.alone = true});
  const std::vector<Field> fields = layer_fields({3000, 40});
  const UnitSpec spec{fields, 3040};
  const Tensor scratch({code->scratch_bytes(spec, fft_info(0))}, DType::u8);
  std::vector<Tensor> payload;
  std::vector<Payload> payloads;
  const auto decoded = [&](std::span<const Payload> list, bool at_once) {
    Tensor into({3043}, DType::f32);
    if (at_once) {
      code->decode_sum(context, list, true, spec, fft_info(0), into, scratch.raw());
    } else {
      for (const Payload& one : list)
        code->decode(context, one, 0.5f, true, spec, fft_info(0), into, scratch.raw());
    }
    return into;
  };
  for (int rank = 0; rank < 4; ++rank) {
    const Tensor gradient({3043}, DType::f32);
    for (int64_t i = 0; i < 3043; ++i) gradient.data<float>()[i] = fft_noise(3, rank, i);
    const int64_t bytes = code->message(spec, fft_info(0)).bytes;
    payload.push_back(Tensor({bytes}, DType::u8));
    code->encode(context, {.gradient = gradient.data<float>()}, spec, fft_info(0),
                 {payload.back().raw(), bytes, nullptr}, scratch.raw());
    payloads.push_back({rank, payload.back().raw(), bytes});
  }
  EXPECT_EQ(backend.transforms.forwards, 8);
  EXPECT_EQ(backend.transforms.inverses, 0);
  const Tensor sum = decoded(payloads, true);
  EXPECT_EQ(backend.transforms.inverses, 2);  // one for each field
  const Tensor half = decoded(payloads, false);
  for (int64_t i = 0; i < 3043; ++i)  // f32 rounding of sums below 4
    EXPECT_NEAR(sum.data<float>()[i], 2.0f * half.data<float>()[i], 2e-6) << i;
}

TEST(Fft, DoesNotSeeHowAFieldIsCut) {
  UnitRig whole(layer_fields({5000}), make_method("fft", "compression.feedback = 'ef'"));
  UnitRig cut({joined_field({1234, 1, 3000, 765})},
              make_method("fft", "compression.feedback = 'ef'"));
  for (int64_t step = 0; step < 3; ++step) {
    const auto each = [&](auto visit) {
      int64_t position = 0;
      for (const Slice& slice : cut.fields[0].slices)
        for (int64_t i = 0; i < slice.numel; ++i) visit(slice.offset + i, position++);
    };
    each([&](int64_t at, int64_t i) {
      cut.gradient()[at] = whole.gradient()[i] = fft_noise(step, 0, i);
    });
    const PayloadBytes payload = whole.encode(fft_info(step));
    ASSERT_EQ(cut.encode(fft_info(step)), payload);
    cut.decode(fft_info(step), {payload, payload});
    whole.decode(fft_info(step), {payload, payload});
    each([&](int64_t at, int64_t i) {
      ASSERT_EQ(cut.gradient()[at], whole.gradient()[i]);
      ASSERT_EQ(cut.residual()[at], whole.residual()[i]);
    });
  }
}

/// Error feedback: gradients given = results applied + residuals kept.
TEST(Fft, LosesNothingWithFeedback) {
  constexpr int64_t kNumel = 700;
  MethodRig rig(3, {joined_field({300, 400})},
                [] { return make_method("fft", "compression.feedback = 'ef'"); });
  std::vector<double> left(kNumel + 3, 0.0);
  for (int64_t step = 0; step < 40; ++step) {
    for (int rank = 0; rank < 3; ++rank) {
      for (size_t i = 0; i < left.size(); ++i) {
        rig.gradient(rank)[i] = fft_noise(step, rank, static_cast<int64_t>(i));
        left[i] += static_cast<double>(rig.gradient(rank)[i]);
      }
    }
    rig.step(fft_info(step));
    for (size_t i = 0; i < left.size(); ++i) left[i] -= static_cast<double>(rig.gradient(0)[i]);
  }
  for (size_t i = 0; i < left.size(); ++i) {
    if (300 <= i && i < 303) continue;  // between the slices
    double kept = 0.0;
    for (int rank = 0; rank < 3; ++rank)
      kept += static_cast<double>(rig.state(rank, "residual").data<float>()[i]);
    EXPECT_NEAR(kept, left[i], 4e-5) << i;  // f32 rounding of 120 additions of numbers below 8
  }
}

TEST(Fft, TakesInputsOfAnySize) {
  constexpr int64_t kNumel = 300;
  const auto error = [&](const std::string& options, const auto& value) {
    UnitRig rig(layer_fields({kNumel}), make_method("fft", options));
    std::vector<float> given;
    for (int64_t i = 0; i < kNumel; ++i) given.push_back(value(i));
    std::copy(given.begin(), given.end(), rig.gradient());
    rig.decode(fft_info(0), {rig.encode(fft_info(0))});
    double most = 0.0;
    for (int64_t i = 0; i < kNumel; ++i)
      most = std::max(most, std::fabs(static_cast<double>(rig.gradient()[i]) -
                                      static_cast<double>(given[static_cast<size_t>(i)])));
    return most;  // std::max passes over a NaN
  };
  EXPECT_EQ(error("", [](int64_t) { return 0.0f; }), 0.0);
  EXPECT_LT(error("", [](int64_t) { return 0.75f; }), 0.75 / 32);  // one number of 3 mantissa bits
  EXPECT_LT(error("", [](int64_t) { return 3e38f; }), 3e38 / 16);
  EXPECT_LT(error(kWidest, [](int64_t i) { return 4e37f * fft_noise(0, 0, i); }), 1e32);
  // f32's least number is 1.4e-45, and spectra are scaled by 2^-9
  EXPECT_LT(error(kWidest, [](int64_t i) { return 1e-38f * fft_noise(0, 0, i); }), 1e-41);
  EXPECT_LT(error("", [](int64_t i) { return 1e-44f * fft_noise(0, 0, i); }), 1e-41);
}

TEST(Fft, KeepsItsResidualIfTheGradientIsNotFinite) {
  UnitRig rig(layer_fields({800}), make_method("fft", "compression.feedback = 'ef'"));
  std::fill_n(rig.residual(), 800, 3.0f);
  std::fill_n(rig.gradient(), 800, std::numeric_limits<float>::infinity());
  rig.unit.finite = false;
  rig.decode(fft_info(0), {rig.encode(fft_info(0))});
  EXPECT_EQ(std::count(rig.gradient(), rig.gradient() + 800, 0.0f), 800);
  EXPECT_EQ(std::count(rig.residual(), rig.residual() + 800, 3.0f), 800);
}

TEST(Fft, RefusesPayloadsThatAreNone) {
  UnitRig rig(layer_fields({500, 900}), make_method("fft", ""));
  for (int64_t i = 0; i < 1403; ++i) rig.gradient()[i] = fft_noise(0, 0, i);
  const PayloadBytes good = rig.encode(fft_info(0));
  PayloadBytes bad(good.begin(), good.end() - 4);
  EXPECT_EQ(
      error_of([&] {
        rig.decode(fft_info(0), {good, bad});
      }),
      concat("fft: the payload of rank 1 has ", bad.size(), " bytes, expected ", good.size()));
  bad = good;
  bad[good.size() - 4 * (43 + 15 + 1)] = std::byte{0xff};  // the second field's largest magnitude
  bad[good.size() - 4 * (43 + 15 + 1) + 3] = std::byte{0xff};
  EXPECT_EQ(error_of([&] {
              rig.decode(fft_info(0), {good, bad});
            }),
            "the payload of rank 1: field 1 has an invalid scale");
}

TEST(Fft, WorksOnALateStream) {
  UnitRig now(layer_fields({2000, 50}), make_method("fft", "compression.feedback = 'ef'"));
  UnitRig later(layer_fields({2000, 50}), make_method("fft", "compression.feedback = 'ef'"));
  for (int64_t i = 0; i < 2053; ++i) now.gradient()[i] = later.gradient()[i] = fft_noise(0, 0, i);
  const PayloadBytes payload = now.encode(fft_info(0));
  now.decode(fft_info(0), {payload});

  TestContext late({.late = true});
  const Tensor scratch({later.compressor->scratch_bytes(later.unit.spec, fft_info(0))}, DType::u8);
  const auto bytes = static_cast<int64_t>(payload.size());
  const Tensor out({bytes}, DType::u8);
  const Outlet outlet{out.raw(), bytes, nullptr};
  const Payload sent{0, out.raw(), bytes};
  later.unit.scratch = scratch.raw();
  later.compressor->encode(late.context, later.unit, fft_info(0), 0, {&outlet, 1});
  later.compressor->decode(late.context, later.unit, fft_info(0), 0, {&sent, 1});
  late.stream.synchronize();
  EXPECT_EQ(PayloadBytes(out.raw(), out.raw() + bytes), payload);
  for (int64_t i = 0; i < 2053; ++i) {
    ASSERT_EQ(later.gradient()[i], now.gradient()[i]);
    ASSERT_EQ(later.residual()[i], now.residual()[i]);
  }
}

TEST(Fft, IsToldByTheConfiguration) {
  const auto error = [](const std::string& toml) {
    return error_of([&] { make_method("fft", toml); });
  };
  EXPECT_EQ(error("compression.theta = 1.0"),
            "test.toml:1: compression.theta is 1, expected 0 <= theta < 1");
  EXPECT_EQ(error("compression.theta_decay = 0.0"),
            "test.toml:1: compression.theta_decay is 0, expected 0 < theta_decay <= 1");
  EXPECT_EQ(error("compression.range_bits = 1"),
            "test.toml:1: compression.range_bits is 1, expected 2 to 32");
  EXPECT_EQ(error("compression.range_mantissa = 24"),
            "test.toml:1: compression.range_mantissa is 24, expected -1 to 23");
  const auto method = make_method("fft", "");
  EXPECT_EQ(method->state({}, 4).size(), 1);  // a residual
  EXPECT_TRUE(method->traits().dense_1d);
  EXPECT_FALSE(method->traits().sparse);
}

}  // namespace
}  // namespace wisp
