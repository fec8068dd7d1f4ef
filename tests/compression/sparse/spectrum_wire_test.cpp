#include "compression/sparse/spectrum_wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "compression/quantize/range_float.h"
#include "core/loops/parallel_teams.h"
#include "core/tensor/tensor.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

std::vector<uint32_t> packed(const SpectrumWire& wire, const std::vector<float>& spectrum) {
  const FieldSpectrum of{wire, Philox(1, 2, 3)};
  const Tensor scratch({spectra_scratch_bytes({&of, 1})}, DType::u8);
  const Tensor payload({wire.bytes()}, DType::u8);
  std::memset(payload.raw(), 0xa5, static_cast<size_t>(wire.bytes()));
  pack_spectra(Stream::immediate(), {&of, 1}, spectrum.data(), payload.raw(), scratch.raw());
  const auto* words = reinterpret_cast<const uint32_t*>(payload.raw());
  return {words, words + wire.bytes() / 4};
}

std::vector<float> added(const SpectrumWire& wire, const std::vector<uint32_t>& payload,
                         std::vector<float> spectrum) {
  const FieldSpectrum of{wire, Philox(0, 0, 0), 4};
  const Tensor scratch({spectra_scratch_bytes({&of, 1})}, DType::u8);
  int64_t complaint = 0;
  add_spectra(Stream::immediate(), {&of, 1}, reinterpret_cast<const std::byte*>(payload.data()),
              {&complaint, 2}, spectrum.data(), scratch.raw());
  WISP_CHECK(complaint == 0, complaint_in(complaint));
  return spectrum;
}

std::vector<float> noise(int64_t coefficients) {
  std::vector<float> spectrum;
  const Philox philox(5, 0, 0);
  for (uint64_t i = 0; i < static_cast<uint64_t>(2 * coefficients); ++i)
    spectrum.push_back(philox.uniform(i) - 0.5f);
  return spectrum;
}

TEST(SpectrumWire, LaysOutWhatItSays) {
  const SpectrumWire wire{5, 2, 10, 3};
  EXPECT_EQ(wire.bytes(), 4 * (1 + 1 + 2));  // 40 bits of codes
  const std::vector<float> spectrum = {0.1f, 0, 1.0f, -0.5f, 0, 0.1f, 0.25f, 0, 0.01f, -0.2f};
  // coefficients 1 and 3; 1.0, -0.5, 0.25 and 0 have the codes 511, -503, 495 and 0
  EXPECT_EQ(packed(wire, spectrum),
            (std::vector<uint32_t>{0x3f800000, 0b01010, 511 | (512 + 503) << 10 | 495u << 20, 0}));
  EXPECT_EQ(added(wire, packed(wire, spectrum), std::vector<float>(10, 1.0f)),
            (std::vector<float>{1, 1, 2.0f, 0.5f, 1, 1, 1.25f, 1, 1, 1}));
}

TEST(SpectrumWire, KeepsTheLargest) {
  for (const int64_t coefficients : {1, 2, 31, 32, 33, 257, 5000, 40'000}) {
    for (const int bits : {2, 7, 10, 16, 31, 32}) {
      SCOPED_TRACE(testing::Message() << coefficients << " coefficients, " << bits << " bits");
      const int64_t kept = (coefficients + 4) / 5;
      const int mantissa = bits < 8 ? 0 : std::min(bits - 7, 23);
      const SpectrumWire wire{coefficients, kept, bits, mantissa};
      const std::vector<float> spectrum = noise(coefficients);
      const std::vector<float> decoded = added(
          wire, packed(wire, spectrum), std::vector<float>(static_cast<size_t>(2 * coefficients)));

      float max = 0.0f;
      std::vector<std::pair<float, size_t>> order;
      for (size_t k = 0; k < spectrum.size() / 2; ++k) {
        max = std::max({max, std::fabs(spectrum[2 * k]), std::fabs(spectrum[2 * k + 1])});
        order.emplace_back(-std::hypot(spectrum[2 * k], spectrum[2 * k + 1]), k);
      }
      std::sort(order.begin(), order.end());
      const RangeFloat format(bits, mantissa, max);
      std::vector<float> expected(spectrum.size(), 0.0f);
      for (size_t j = 0; j < static_cast<size_t>(kept); ++j) {
        for (size_t i = 2 * order[j].second; i < 2 * order[j].second + 2; ++i)
          expected[i] = format.decode(format.encode(spectrum[i]));
      }
      EXPECT_EQ(decoded, expected);
    }
  }
}

TEST(SpectrumWire, PacksAndAddsManyAtOnceAsOneByOne) {
  std::vector<FieldSpectrum> spectra;
  std::vector<float> numbers, sum;
  std::vector<uint32_t> words;
  for (int64_t f = 0; f < 120; ++f) {  // more than an argument has room for
    const int64_t coefficients = f == 7 ? 20'000 : 1 + 13 * f % 300;
    const SpectrumWire wire{coefficients, (coefficients + 2) / 3, 9, 2};
    spectra.push_back({wire, Philox(1, 2, 3), f});
    const std::vector<float> own = noise(coefficients);
    const std::vector<uint32_t> payload = packed(wire, own);
    const std::vector<float> more = added(wire, payload, own);
    numbers.insert(numbers.end(), own.begin(), own.end());
    words.insert(words.end(), payload.begin(), payload.end());
    sum.insert(sum.end(), more.begin(), more.end());
  }
  const Tensor scratch({spectra_scratch_bytes(spectra)}, DType::u8);
  std::vector<uint32_t> payload(words.size());
  auto* bytes = reinterpret_cast<std::byte*>(payload.data());
  const Stream stream = Stream::immediate();
  pack_spectra(stream, spectra, numbers.data(), bytes, scratch.raw());
  EXPECT_EQ(payload, words);
  int64_t complaint = 0;
  add_spectra(stream, spectra, bytes, {&complaint, 2}, numbers.data(), scratch.raw());
  EXPECT_EQ(complaint, 0);
  EXPECT_EQ(numbers, sum);
}

TEST(SpectrumWire, DoesNotDependOnTheOrderOfATeamsThreads) {
  const SpectrumWire wire{20'000, 4321, 11, 4};
  const std::vector<float> spectrum = noise(20'000);
  const std::vector<uint32_t> payload = packed(wire, spectrum);
  const std::vector<float> sum = added(wire, payload, spectrum);
  for (const uint32_t seed : {1u, 2u}) {
    const ShuffledTeams shuffled(seed);
    EXPECT_EQ(packed(wire, spectrum), payload);
    EXPECT_EQ(added(wire, payload, spectrum), sum);
  }
}

TEST(SpectrumWire, ComparesMagnitudesOfAnySize) {
  for (const float scale : {1e-44f, 1e-30f, 1.0f, 1e30f, 3e38f}) {
    const SpectrumWire wire{4, 1, 32, 23};
    const std::vector<uint32_t> payload =
        packed(wire, {0.4f * scale, 0, 0, 0, 0.7f * scale, 0.7f * scale, 0.9f * scale, 0});
    EXPECT_EQ(payload[1], 0b0100u) << scale;
  }
  EXPECT_EQ(std::popcount(packed(SpectrumWire{4, 2, 10, 3}, std::vector<float>(8, 0.0f))[1]), 2);
}

TEST(SpectrumWire, RefusesWhatIsNoSpectrum) {
  const SpectrumWire wire{40, 8, 10, 3};
  const std::vector<uint32_t> good = packed(wire, noise(40));
  const auto error = [&](const std::function<void(std::vector<uint32_t>&)>& damage) {
    std::vector<uint32_t> bad = good;
    damage(bad);
    return error_of([&] { added(wire, bad, std::vector<float>(80)); });
  };
  const std::string field = "the payload of rank 2: field 4 ";
  EXPECT_EQ(error([](auto& bad) { bad[1] = bad[2] = 0; }),
            field + "has 0 entries, which do not fit the field or the payload");
  EXPECT_EQ(error([](auto& bad) { bad[1] = 0x7f, bad[2] = 0x100; }),
            field + "has entry 7 after its last element");
  for (const float max : {-1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(error([&](auto& bad) { bad[0] = float_bits(max); }), field + "has an invalid scale");
  }
  EXPECT_EQ(error([](auto& bad) { bad[3] = ~0u; }), "no error");  // any code is a number
}

}  // namespace
}  // namespace wisp
