#include "apps/table/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "core/random.h"

namespace wisp {
namespace {

constexpr uint64_t kDraws = 10'000, kSeed = 1;
constexpr size_t kTail = kDraws / 40;  // 2.5 % of the draws

double difference(std::span<const std::vector<double>> differences,
                  std::span<const double> divisors, std::span<const size_t> pairs,
                  std::span<const size_t> units) {
  double sum = 0.0, divisor = 0.0;
  for (const size_t unit : units) {
    for (const size_t pair : pairs) sum += differences[pair][unit];
    divisor += divisors[unit];
  }
  return sum / (static_cast<double>(pairs.size()) * divisor);
}

}  // namespace

double bootstrap_half(std::span<const std::vector<double>> differences,
                      std::span<const double> divisors) {
  if (differences.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  std::vector<size_t> pairs(differences.size()), units(divisors.size());
  std::iota(pairs.begin(), pairs.end(), 0);
  std::iota(units.begin(), units.end(), 0);
  const double mean = difference(differences, divisors, pairs, units);
  std::vector<double> drawn;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const Philox random(kSeed, draw, 0);
    uint64_t index = 0;
    for (std::vector<size_t>* of : {&pairs, &units}) {
      for (size_t& one : *of) one = random.below(index++, static_cast<uint32_t>(of->size()));
    }
    drawn.push_back(difference(differences, divisors, pairs, units));
    if (std::isnan(drawn.back())) return drawn.back();  // it has no place in an order
  }
  std::sort(drawn.begin(), drawn.end());
  return std::max(mean - drawn[kTail], drawn[kDraws - 1 - kTail] - mean);
}

}  // namespace wisp
