#include "core/loops/parallel_teams.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "core/loops/device_table.h"
#include "core/random.h"

namespace wisp {
namespace {

constexpr int64_t kItems = 20, kMost = 5000;
constexpr int kBins = 7;

int64_t size_of_item(int64_t item) { return item * 1637 % (kMost + 1); }

/// Several phases for each item: squares, a histogram of remainders, prefix sums, and the even
/// numbers. Each phase reads results of the one before.
struct Phases {
  struct Shared {
    uint32_t bins[kBins];
    int64_t largest;
  };
  const int64_t* numel;
  uint32_t* number;  // squared in place, modulo 1000
  uint32_t* count;   // [items][kBins]
  int64_t* before;   // [items][kMost]
  int64_t* even;     // [items][kMost]
  int64_t* evens;
  WISP_HD void operator()(const Team& team, int64_t item, Shared& shared) const {
    const int64_t n = numel[item];
    uint32_t* own = number + item * kMost;
    team.each(kBins, [&](int64_t b) { shared.bins[b] = 0; });
    team.fill(n, own, [&](int64_t i) { return own[i] * own[i] % 1000; });
    team.histogram(n, shared.bins, [&](int64_t i) {
      const int rest = static_cast<int>(own[i] % 9);
      return rest < kBins ? rest : -1;
    });
    team.each(kBins, [&](int64_t b) { count[item * kBins + b] = shared.bins[b]; });
    const int64_t sum = team.scan(
        n, [&](int64_t i) { return int64_t{own[i]}; },
        [&](int64_t i, int64_t sum_before) { before[item * kMost + i] = sum_before; });
    team.once([&] { shared.largest = sum; });
    evens[item] = team.select(
        n, [&](int64_t i) { return own[i] % 2 == 0; },
        [&](int64_t at, int64_t i) { even[item * kMost + at] = i + shared.largest; });
  }
};

struct Result {
  std::vector<uint32_t> count;
  std::vector<int64_t> before, even, evens;
  bool operator==(const Result&) const = default;
};

Result run_phases() {
  std::vector<int64_t> numel;
  std::vector<uint32_t> number;
  const Philox random(1, 2, 3);
  for (int64_t item = 0; item < kItems; ++item) numel.push_back(size_of_item(item));
  for (uint64_t i = 0; i < kItems * kMost; ++i) number.push_back(random.bits(i) % 1000);
  Result result{std::vector<uint32_t>(kItems * kBins), std::vector<int64_t>(kItems * kMost, -1),
                std::vector<int64_t>(kItems * kMost, -1), std::vector<int64_t>(kItems)};
  parallel_teams(Stream::immediate(), kItems,
                 Phases{numel.data(), number.data(), result.count.data(), result.before.data(),
                        result.even.data(), result.evens.data()},
                 10'000);
  return result;
}

Result scalar_phases() {
  Result result{std::vector<uint32_t>(kItems * kBins), std::vector<int64_t>(kItems * kMost, -1),
                std::vector<int64_t>(kItems * kMost, -1), std::vector<int64_t>(kItems)};
  const Philox random(1, 2, 3);
  for (int64_t item = 0; item < kItems; ++item) {
    std::vector<int64_t> square;
    for (int64_t i = 0; i < size_of_item(item); ++i) {
      const int64_t number = random.bits(static_cast<uint64_t>(item * kMost + i)) % 1000;
      square.push_back(number * number % 1000);
    }
    int64_t sum = 0;
    for (size_t i = 0; i < square.size(); ++i) {
      result.before[static_cast<size_t>(item * kMost) + i] = sum;
      sum += square[i];
      if (square[i] % 9 < kBins) ++result.count[static_cast<size_t>(item * kBins + square[i] % 9)];
    }
    int64_t& evens = result.evens[static_cast<size_t>(item)];
    for (size_t i = 0; i < square.size(); ++i)
      if (square[i] % 2 == 0)
        result.even[static_cast<size_t>(item * kMost + evens++)] = static_cast<int64_t>(i) + sum;
  }
  return result;
}

TEST(ParallelTeams, GoThroughPhasesInAnyOrder) {
  const Result expected = scalar_phases();
  const int threads = omp_get_max_threads();
  for (const int chosen : {1, 3}) {
    omp_set_num_threads(chosen);
    EXPECT_EQ(run_phases(), expected) << chosen << " threads";
    for (uint32_t seed = 1; seed <= 5; ++seed) {
      const ShuffledTeams shuffled(seed);
      EXPECT_EQ(run_phases(), expected) << chosen << " threads, seed " << seed;
    }
  }
  omp_set_num_threads(threads);
}

TEST(ParallelTeams, AreShuffled) {
  const std::vector<int64_t> order = parallel::shuffled(1, 100);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), parallel::shuffled(2, 100).begin()));
  EXPECT_NE(order, parallel::shuffled(2, 100));
}

TEST(TableWriter, WritesRowsOfAnySizeOneBehindTheOther) {
  struct Small {
    int64_t a;
  };
  struct Large {
    int64_t a[7];
  };
  std::vector<int64_t> memory(3 * 1000 * 8 + 1, -1), expected;
  TableWriter table(Stream::immediate(), memory.data());
  for (int64_t i = 0; i < 3000; ++i) {
    if (i % 3 == 0) {
      table.put(Small{i});
      expected.push_back(i);
    } else {
      table.put(Large{{i, 1, 2, 3, 4, 5, i}});
      for (const int64_t word : {i, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}, i})
        expected.push_back(word);
    }
  }
  table.finish();
  EXPECT_EQ(memory[expected.size()], -1);
  memory.resize(expected.size());
  EXPECT_EQ(memory, expected);
}

}  // namespace
}  // namespace wisp
