#include "compression/quantize/lanes.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

TEST(Lanes, AreWideEnoughForEverySum) {
  for (const auto& [workers, levels, bits, each] :
       std::vector<std::array<int, 4>>{{1, 1, 2, 16},
                                       {2, 1, 3, 10},
                                       {3, 1, 3, 10},
                                       {4, 1, 4, 8},
                                       {8, 1, 5, 6},
                                       {3, 7, 6, 5},
                                       {4, 7, 6, 5},
                                       {2, 127, 9, 3},
                                       {4, 127, 10, 3},
                                       {129, 127, 15, 2},
                                       {258, 127, 16, 2},
                                       {259, 127, 17, 1}}) {
    const Lanes lanes(workers, levels);
    EXPECT_EQ(lanes.bits, bits) << workers << ", " << levels;
    EXPECT_EQ(lanes.each, each);
    EXPECT_GE(int64_t{1} << lanes.bits, 2 * lanes.most + 1);
    EXPECT_LE(lanes.bits * lanes.each, 32);
    EXPECT_EQ(lanes.words(0), 0);
    EXPECT_EQ(lanes.words(1), 1);
    EXPECT_EQ(lanes.words(each + 1), 2);
  }
  EXPECT_EQ(error_of([] { Lanes(1 << 20, 127); }),
            "lanes: the sum of 1048576 workers' levels up to 127 is beyond 2^24; send them "
            "gathered (compression.scaler = \"own\")");
}

/// Workers at one end of the scale, at the other, and mixed: no lane touches its neighbours.
TEST(Lanes, SumsOfWordsAreSumsOfLevels) {
  TestContext test;
  for (const int workers : {1, 2, 3, 4, 31}) {
    for (const int levels : {1, 7, 127}) {
      const Lanes lanes(workers, levels);
      for (const int64_t numel : {int64_t{1}, int64_t{9}, int64_t{63} * lanes.each,
                                  int64_t{64} * lanes.each, int64_t{200} * lanes.each + 1}) {
        const std::vector<Field> fields = layer_fields({numel});
        const UnitSpec spec{fields, numel};
        const auto s = static_cast<float>(levels);
        Grid grid = Grid::of(levels, levels);
        std::vector<uint32_t> sum(static_cast<size_t>(lanes.words(numel)), 0);
        std::vector<float> expected(static_cast<size_t>(numel), 0.0f);
        for (int worker = 0; worker < workers; ++worker) {
          std::vector<float> x(expected.size());
          for (size_t i = 0; i < x.size(); ++i) {
            const int choice = i % 4 == 3 ? worker % 3 : static_cast<int>(i % 3);
            x[i] = choice == 0 ? s : choice == 1 ? -s : 0.0f;
            expected[i] += x[i];
          }
          std::vector<uint32_t> words(sum.size() + 1, 0xabcdu);
          lanes.encode(test.stream, Source{x.data()}, spec, {}, false, &grid, words.data());
          EXPECT_EQ(words.back(), 0xabcdu);
          for (size_t w = 0; w < sum.size(); ++w) sum[w] += words[w];
        }
        std::vector<float> decoded(expected.size(), 1.0f);
        lanes.decode(test.stream, spec, sum.data(), &grid, 2.0f, true, decoded.data());
        for (size_t i = 0; i < expected.size(); ++i)
          ASSERT_EQ(decoded[i], 1.0f + 2.0f * expected[i])
              << workers << ", " << levels << ", " << i;
      }
    }
  }
}

/// A slice may begin anywhere in its field. Its elements round as in a field of one piece.
TEST(Rounding, DependsOnThePositionInTheField) {
  const Rounding rounding{Dither(1, 2, 3)};
  std::vector<uint32_t> whole(256);
  for (int64_t at = 0; at < 256; at += group::kSize)
    rounding.each(LoneThread(), at, group::kSize,
                  [&](int64_t j, uint32_t random) { whole[static_cast<size_t>(at + j)] = random; });
  for (const int64_t begin : {1, 15, 16, 17, 32, 63, 64, 65, 100}) {
    for (const int64_t size : {int64_t{5}, group::kSize}) {
      int64_t visited = 0;
      rounding.each(LoneThread(), begin, size, [&](int64_t j, uint32_t random) {
        ++visited;
        EXPECT_EQ(random, whole[static_cast<size_t>(begin + j)]) << begin << " + " << j;
      });
      EXPECT_EQ(visited, size);
    }
  }
}

}  // namespace
}  // namespace wisp
