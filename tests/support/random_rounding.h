// Checks of codes that round at random: the mean over steps is the number itself, and the error is
// bounded. A correct code fails a check with a probability of at most 1e-6.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/support/method_rig.h"
#include "tests/support/unit_rig.h"

namespace wisp {

/// A paper's rounding of a number in units of levels: up with the probability of its fraction, in
/// 2^-23. Of each 64 elements, those 16 apart share a random word.
inline int model_level(float scaled, const Dither& dither, int64_t i) {
  const uint32_t random =
      std::rotl(dither.bits(i - i % 64 + i % 16), static_cast<int>(i % 64 / 16 * 8));
  const double fixed = std::trunc(static_cast<double>(scaled * 0x1p23f));
  return static_cast<int>(std::floor((fixed + (random >> 9)) * 0x1p-23));
}

/// Numbers distributed like a gradient's: mostly small, of both signs.
inline float test_gradient(int64_t step, int rank, int64_t i) {
  const Philox random(8, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
  const float u = random.uniform(static_cast<uint64_t>(i)) - 0.5f;
  return u * u * u;
}

/// A step of seed 0, whose number and rank choose the random numbers of a rounding.
inline StepInfo info_at(int64_t step, int rank = 0, int workers = 1) {
  StepInfo info;
  info.step = step;
  info.rank = rank;
  info.ranks = info.summands = workers;
  return info;
}

/// What a method's first round makes of the field x of one worker.
inline std::vector<float> decoded(const std::string& method, const std::string& toml,
                                  const std::vector<float>& x) {
  UnitRig rig(layer_fields({static_cast<int64_t>(x.size())}), make_method(method, toml));
  std::copy(x.begin(), x.end(), rig.gradient());
  rig.decode(info_at(0), {rig.encode(info_at(0))});
  return {rig.gradient(), rig.gradient() + x.size()};
}

struct RoundingErrors {
  double ratio;  // mean of |Q(x) - x|² over |x|²
  double slack;  // slack of the mean, by Hoeffding's inequality
};

/// One worker rounds the field x in `steps` steps. Checks each element's mean. `gap` is the largest
/// distance between neighbouring values of element i.
inline RoundingErrors check_unbiased(const std::string& method, const std::string& toml,
                                     const std::vector<float>& x, const std::vector<float>& gap,
                                     int steps = 4000) {
  const auto n = static_cast<int64_t>(x.size());
  MethodRig rig(1, layer_fields({n}), [&] { return make_method(method, toml); });
  std::vector<double> sum(x.size(), 0.0);
  double errors = 0.0, norm = 0.0, most = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    norm += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    most += static_cast<double>(gap[i]) * static_cast<double>(gap[i]);
  }
  for (int64_t step = 0; step < steps; ++step) {
    std::copy(x.begin(), x.end(), rig.gradient(0));
    StepInfo info;
    info.step = step;
    rig.step(info);
    for (size_t i = 0; i < x.size(); ++i) {
      const double value = static_cast<double>(rig.gradient(0)[i]);
      sum[i] += value;
      errors += (value - static_cast<double>(x[i])) * (value - static_cast<double>(x[i]));
    }
  }
  // Hoeffding for each of n means: 2 n exp(-2 steps t² / gap²) = 1e-6; plus 1e-5 for f32 products
  const double bound = std::sqrt(std::log(2e6 * static_cast<double>(n)) / (2.0 * steps)) + 1e-5;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(sum[i] / steps, static_cast<double>(x[i]), bound * static_cast<double>(gap[i]))
        << method << " " << toml << ", element " << i;
  }
  return {errors / steps / norm, most / norm * std::sqrt(std::log(2e6) / (2.0 * steps))};
}

inline std::string hex(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    const char* digits = "0123456789abcdef";
    text += digits[std::to_integer<size_t>(byte) >> 4];
    text += digits[std::to_integer<size_t>(byte) & 15];
  }
  return text;
}

}  // namespace wisp
