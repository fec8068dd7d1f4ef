#include "core/random.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace wisp {
namespace {

using Words = std::array<uint32_t, 4>;

Words words(const Philox::Block& block) {
  return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

/// Philox4x32-10 of a counter under a key, without Wisp's key schedule.
Words raw(const Words& counter, uint32_t key0, uint32_t key1) {
  Philox philox(0, 0, 0);
  philox.key[0] = key0;
  philox.key[1] = key1;
  philox.high[0] = counter[2];
  philox.high[1] = counter[3];
  return words(philox.block(uint64_t{counter[1]} << 32 | counter[0]));
}

TEST(Random, EqualsTheAuthorsVectors) {
  // the known answers for philox4x32-10 that come with the paper's library
  EXPECT_EQ(raw({0, 0, 0, 0}, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(raw({ones, ones, ones, ones}, ones, ones),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(raw({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, EveryBitOfSeedStepIdAndIndexCounts) {
  std::set<Words> seen{words(Philox(0, 0, 0).block(0))};
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t value = uint64_t{1} << bit;
    seen.insert(words(Philox(value, 0, 0).block(0)));
    seen.insert(words(Philox(0, value, 0).block(0)));
    seen.insert(words(Philox(0, 0, value).block(0)));
    seen.insert(words(Philox(0, 0, 0).block(value)));
  }
  EXPECT_EQ(seen.size(), 1u + 4 * 64);
}

TEST(Random, Below64TakesTheUpperBitsOf64) {
  const Philox random(3, 1, 4);
  for (uint64_t i = 0; i < 1000; ++i) {
    for (const int64_t bound : {int64_t{1}, int64_t{10}, int64_t{1} << 31, int64_t{1} << 32}) {
      const Philox::Block block = random.block(i);
      const uint64_t bits = uint64_t{block.word[0]} << 32 | block.word[1];
      const auto exact = static_cast<unsigned __int128>(bits) * static_cast<uint64_t>(bound) >> 64;
      EXPECT_EQ(random.below64(i, bound), static_cast<int64_t>(exact));
    }
  }
}

TEST(Random, UniformFillsItsRangeEvenly) {
  const Philox random(3, 1, 4);
  const int draws = 64'000;
  std::vector<int> bins(64);
  for (uint64_t i = 0; i < draws; ++i) {
    const float value = random.uniform(i);
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    ++bins[static_cast<size_t>(value * 64)];
  }
  double chi_squared = 0;
  for (const int count : bins) chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_squared, 103.4);  // probability 0.1 % at 63 degrees of freedom
}

TEST(Random, BelowStaysBelow) {
  const Philox random(1, 2, 3);
  std::set<uint32_t> seen;
  for (uint64_t i = 0; i < 200; ++i) seen.insert(random.below(i, 5));
  EXPECT_EQ(seen, (std::set<uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(random.below(0, 1), 0u);
}

/// Over many keys, each index is uniform, and pairs of indices at any distance are uncorrelated.
TEST(Random, DitherIsUniformAndUncorrelatedOverKeys) {
  constexpr int kKeys = 64'000;
  for (const int64_t index : {int64_t{0}, int64_t{1}, int64_t{4096}, (int64_t{1} << 31) + 5}) {
    std::vector<int> bins(64);
    std::array<int64_t, 5> distances{1, 2, 16, 1 << 16, 1 << 24};
    std::array<double, 5> products{};
    for (uint64_t step = 0; step < kKeys; ++step) {
      const Dither dither(9, step, 77);
      const float value = dither.uniform(index);
      ASSERT_GE(value, 0.0f);
      ASSERT_LT(value, 1.0f);
      ++bins[static_cast<size_t>(value * 64)];
      for (size_t d = 0; d < distances.size(); ++d)
        products[d] += (static_cast<double>(value) - 0.5) *
                       (static_cast<double>(dither.uniform(index + distances[d])) - 0.5);
    }
    double chi_squared = 0;
    for (const int count : bins) chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
    EXPECT_LT(chi_squared, 131.0);  // probability 1e-6 at 63 degrees of freedom
    // A product has variance 1 / 144. The sum of 64,000 is 5 deviations off with probability 6e-7.
    for (const double sum : products) EXPECT_LT(std::fabs(sum), 5.0 * std::sqrt(kKeys / 144.0));
  }
}

/// Pairs of neighbours are uniform along the indices of a field, with one key.
TEST(Random, DitherIsUniformAlongAField) {
  for (uint64_t step = 0; step < 4; ++step) {
    const Dither dither(3, step, 5);
    std::vector<int> bins(4096);  // counts of pairs of neighbours
    for (int64_t i = 0; i < 4096 * 64; ++i) {
      const auto x = static_cast<size_t>(dither.uniform(2 * i) * 64);
      const auto y = static_cast<size_t>(dither.uniform(2 * i + 1) * 64);
      ++bins[64 * x + y];
    }
    double chi_squared = 0;
    for (const int count : bins) chi_squared += (count - 64.0) * (count - 64.0) / 64.0;
    EXPECT_LT(chi_squared, 4095.0 + 5.2 * std::sqrt(2 * 4095.0));  // probability 1e-6
  }
}

/// Numbers of indices that share a word. All pairs of them are uniform over the keys.
TEST(Random, DitherSharesWordsWithoutCorrelation) {
  constexpr int kKeys = 64 * 4096;
  for (const int64_t index : {int64_t{0}, int64_t{15}, (int64_t{1} << 31) + 64}) {
    std::array<std::vector<int>, 6> bins;  // counts for each pair of indices
    bins.fill(std::vector<int>(4096));
    for (uint64_t step = 0; step < kKeys; ++step) {
      const Dither dither(9, step, 78);
      std::array<uint32_t, 4> word;
      for (size_t i = 0; i < word.size(); ++i) {
        word[i] = dither.shared_bits(index + static_cast<int64_t>(16 * i));
        ASSERT_EQ(word[i], std::rotl(dither.bits(index), static_cast<int>(8 * i)));
      }
      size_t pair = 0;
      for (size_t i = 0; i < word.size(); ++i)
        for (size_t j = i + 1; j < word.size(); ++j)
          ++bins[pair++][64 * (word[i] >> 26) + (word[j] >> 26)];
    }
    for (const std::vector<int>& counts : bins) {
      double chi_squared = 0;
      for (const int count : counts) chi_squared += (count - 64.0) * (count - 64.0) / 64.0;
      EXPECT_LT(chi_squared, 4095.0 + 5.2 * std::sqrt(2 * 4095.0));  // probability 1e-6
    }
  }
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  const Philox random(1, 0, 0);
  const int draws = 40'000;
  double sum = 0;
  double squares = 0;
  for (uint64_t i = 0; i < draws; ++i) {
    const double value = normal(random, i);
    sum += value;
    squares += value * value;
  }
  // four standard errors: 1 / sqrt(draws) and sqrt(2 / draws)
  EXPECT_NEAR(sum / draws, 0.0, 4 * std::sqrt(1.0 / draws));
  EXPECT_NEAR(squares / draws, 1.0, 4 * std::sqrt(2.0 / draws));
}

}  // namespace
}  // namespace wisp
