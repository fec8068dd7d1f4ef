#include "core/loops/parallel_teams.h"

#include <atomic>
#include <numeric>

#include "core/base/hash.h"

namespace wisp {
namespace {

std::atomic<uint32_t> test_order{0};

}  // namespace

ShuffledTeams::ShuffledTeams(uint32_t seed) { test_order = seed; }
ShuffledTeams::~ShuffledTeams() { test_order = 0; }

namespace parallel {

uint32_t team_order() { return test_order; }

std::vector<int64_t> shuffled(uint32_t seed, int64_t n) {
  const uint64_t key = hash_number(static_cast<uint64_t>(n), seed);
  std::vector<int64_t> elements(static_cast<size_t>(n));
  std::iota(elements.begin(), elements.end(), 0);
  for (size_t left = elements.size(); left > 1; --left)
    std::swap(elements[left - 1], elements[(hash_number(left, key) >> 32) % left]);
  return elements;
}

}  // namespace parallel
}  // namespace wisp
