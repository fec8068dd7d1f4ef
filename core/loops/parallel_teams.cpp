#include "core/loops/parallel_teams.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>

namespace wisp {
namespace {

std::atomic<uint32_t>& order() {
  static std::atomic<uint32_t> seed{0};
  return seed;
}

}  // namespace

ShuffledTeams::ShuffledTeams(uint32_t seed) { order() = seed; }
ShuffledTeams::~ShuffledTeams() { order() = 0; }

namespace parallel {

uint32_t team_order() { return order(); }

std::vector<int64_t> shuffled(uint32_t seed, int64_t n) {
  std::mt19937 random(seed + static_cast<uint32_t>(n));
  std::vector<int64_t> elements(static_cast<size_t>(n));
  std::iota(elements.begin(), elements.end(), 0);
  std::shuffle(elements.begin(), elements.end(), random);
  return elements;
}

}  // namespace parallel
}  // namespace wisp
