#include "core/loops/parallel_small_teams.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace wisp {
namespace {

struct Plus {
  WISP_HD double combine(double a, double b) const { return a + b; }
};

/// Reverses 64 numbers, adds up 1 / (1 + number) in lanes, and marks odd numbers with bits.
struct Reverse {
  struct Shared {
    int64_t number[64];
    uint16_t half[64];
  };
  const int64_t* from;
  int64_t* to;
  uint16_t* halves;
  double* tree;
  double* in_order;
  uint64_t* odd;
  int64_t* less;  // each number, less 1 if it is odd

  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t item, Shared& shared) const {
    const int64_t* in = from + item * 64;
    team.each(64, [&](int64_t i) { shared.number[i] = in[i]; });
    team.each(64, [&](int64_t i) { to[item * 64 + i] = shared.number[63 - i]; });
    team.template write<64>(shared.half,
                            [&](int64_t i) { return static_cast<uint16_t>(shared.number[i] / 2); });
    team.each(64, [&](int64_t i) { halves[item * 64 + i] = shared.half[63 - i]; });
    team.each(64, [&](int64_t i) { less[item * 64 + i] = in[i]; });
    team.write_bits(
        odd + item, [&](int64_t i) { return less[item * 64 + i]; },
        [](int64_t, int64_t number) { return number % 2 == 1; },
        [&](int64_t i, int64_t number) { less[item * 64 + i] = number - number % 2; });
    typename Team::template PerLane<double> sum, other;
    for (int64_t i = 0; i < 64; i += parallel::kLanes) {
      team.lanes([&](int64_t lane) {
        sum[lane] += 1.0 / static_cast<double>(1 + in[i + lane]);
        other[lane] = sum[lane];
      });
    }
    const double folded = team.fold(sum, Plus()), added = team.sum(other);
    team.once([&] {
      tree[item] = folded;
      in_order[item] = added;
    });
  }
};

struct Numbers {
  std::vector<int64_t> to;
  std::vector<uint16_t> halves;
  std::vector<double> tree, in_order;
  std::vector<uint64_t> odd;
  std::vector<int64_t> less;
  bool operator==(const Numbers&) const = default;

  explicit Numbers(int64_t items)
      : to(static_cast<size_t>(items * 64)),
        halves(to.size()),
        tree(static_cast<size_t>(items)),
        in_order(tree.size()),
        odd(tree.size()),
        less(to.size()) {}
  Reverse kernel(const std::vector<int64_t>& from, int64_t item) {
    return {from.data() + item * 64, to.data() + item * 64,  halves.data() + item * 64,
            tree.data() + item,      in_order.data() + item, odd.data() + item,
            less.data() + item * 64};
  }
};

std::vector<int64_t> some_numbers(int64_t items) {
  std::vector<int64_t> numbers(static_cast<size_t>(items * 64));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i * 7919 % 1009);
  return numbers;
}

Numbers expected_of(const std::vector<int64_t>& from, int64_t items) {
  Numbers result(items);
  for (int64_t item = 0; item < items; ++item) {
    double lane[parallel::kLanes] = {};
    for (int64_t i = 0; i < 64; ++i) {
      const int64_t number = from[static_cast<size_t>(item * 64 + i)];
      const auto at = static_cast<size_t>(item * 64 + 63 - i);
      result.to[at] = number;
      result.halves[at] = static_cast<uint16_t>(number / 2);
      result.odd[static_cast<size_t>(item)] |= static_cast<uint64_t>(number % 2) << i;
      result.less[static_cast<size_t>(item * 64 + i)] = number - number % 2;
      lane[i % parallel::kLanes] += 1.0 / static_cast<double>(1 + number);
    }
    result.in_order[static_cast<size_t>(item)] =
        std::accumulate(lane, lane + parallel::kLanes, 0.0);
    for (int half = parallel::kLanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
    result.tree[static_cast<size_t>(item)] = lane[0];
  }
  return result;
}

TEST(ParallelSmallTeams, GoThroughPhasesInAnyOrder) {
  constexpr int64_t kItems = 1000;
  const std::vector<int64_t> from = some_numbers(kItems);
  const auto run = [&] {
    Numbers result(kItems);
    parallel_small_teams(Stream::immediate(), kItems, result.kernel(from, 0), 64);
    return result;
  };
  const Numbers expected = expected_of(from, kItems);
  EXPECT_EQ(run(), expected);
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const ShuffledTeams shuffled(seed);
    EXPECT_EQ(run(), expected) << "seed " << seed;
  }
}

/// More kernels than an argument has room for, some without items.
TEST(SmallTeams, AreLaunchedTogether) {
  constexpr int64_t kItems = 700;
  const std::vector<int64_t> from = some_numbers(kItems);
  Numbers result(kItems);
  SmallTeams<Reverse> kernels(Stream::immediate());
  int64_t item = 0;
  for (int64_t count = 0; item < kItems; count = (count + 1) % 5) {
    const int64_t items = std::min(count, kItems - item);
    kernels.add(items, result.kernel(from, item), 64);
    item += items;
  }
  kernels.finish();
  kernels.finish();  // has no effect
  EXPECT_EQ(result, expected_of(from, kItems));
  static_assert(parallel::SmallTeamsTable<Reverse>::kMost < kItems / 2);
  static_assert(sizeof(parallel::SmallTeamsTable<Reverse>) <= 4000);
}

}  // namespace
}  // namespace wisp
