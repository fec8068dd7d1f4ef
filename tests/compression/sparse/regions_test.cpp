#include "compression/sparse/regions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// Regions of one field, by rank, of a list that has all positions.
std::vector<Range> regions(int64_t numel, int workers, const std::vector<int64_t>& cuts) {
  const std::vector<Field> fields = layer_fields({numel});
  const UnitSpec spec{fields, numel};
  const auto bytes = static_cast<size_t>(layout_bytes<SparseList>(1, numel));
  std::vector<std::byte> from(bytes), into(bytes);
  const auto all = lay_out<SparseList>(from.data(), 1, numel);
  const auto taken = lay_out<SparseList>(into.data(), 1, numel);
  all.range[0] = {0, numel};
  std::iota(all.position, all.position + numel, 0u);
  std::fill_n(all.value, numel, 1.0f);
  std::vector<Range> part(static_cast<size_t>(workers));
  StepInfo info;
  info.ranks = info.summands = workers;
  take_parts(Stream::immediate(), spec, info, all, {}, {}, cuts.data(), taken, part.data());
  return part;
}

/// Every position has one owner for all cuts: even ones, means of the workers' selections, and cuts
/// from a broken message. With more than 16 workers, a sixteenth has several borders.
TEST(Regions, PartitionAFieldForAnyNumberOfWorkers) {
  for (const int64_t numel : {1, 7, 16, 100, 1000}) {
    for (int workers = 1; workers <= 40; ++workers) {
      const std::vector<Field> fields = layer_fields({numel});
      for (uint64_t draw = 0; draw < 6; ++draw) {
        std::vector<int64_t> cuts(kCutWords, 0);
        const Philox random(7, draw, static_cast<uint64_t>(workers));
        std::vector<int64_t> sum(kCutWords);
        for (size_t c = 0; c < sum.size(); ++c) {
          const int64_t anything = random.below(c, static_cast<uint32_t>(4 * numel)) - numel;
          sum[c] = workers * (draw == 1 ? numel : draw == 2 ? numel / 2 : anything);
        }
        if (draw > 0)
          adopt_cuts(Stream::immediate(), {fields, numel}, sum.data(), workers, cuts.data());
        int64_t next = 0;
        for (const Range& range : regions(numel, workers, cuts)) {
          ASSERT_EQ(range.begin, next) << numel << ", " << workers << ", " << draw;
          ASSERT_GE(range.count, 0);
          next += range.count;
        }
        ASSERT_EQ(next, numel) << workers << ", " << draw;
      }
    }
  }
}

/// The refusal of cuts of two fields, of 20 and 100 elements. They are the multiples of `step`, but
/// for one word.
std::string refusal_of_cuts(int64_t word, int64_t value, int64_t step = 1) {
  const Tensor cuts({2 * kCutWords}, DType::i64);
  for (int64_t c = 0; c < 2 * kCutWords; ++c)
    cuts.data<int64_t>()[c] = c == word ? value : step * (c % kCutWords + 1);
  const int64_t numels[] = {20, 100};
  return error_of([&] { check_cuts(numels, cuts); });
}

TEST(Regions, CutsOfAFileAscendWithinTheirField) {
  EXPECT_EQ(refusal_of_cuts(0, 1), "no error");
  EXPECT_EQ(refusal_of_cuts(0, 0, 0), "no error") << "even regions";
  EXPECT_EQ(refusal_of_cuts(14, 20), "no error");
  EXPECT_EQ(refusal_of_cuts(29, 100), "no error");
  EXPECT_EQ(refusal_of_cuts(3, 2), "cut 3 of field 0 is 2, expected 3 to 20, because cuts ascend");
  EXPECT_EQ(refusal_of_cuts(14, 21),
            "cut 14 of field 0 is 21, expected 14 to 20, because cuts ascend");
  EXPECT_EQ(refusal_of_cuts(17, 100),
            "cut 3 of field 1 is 4, expected 100 to 100, because cuts ascend");
  for (const int64_t word : {0, 7, 14, 15, 29})
    for (const int64_t value : {int64_t{-1}, int64_t{101}, INT64_MIN, INT64_MAX})
      EXPECT_NE(refusal_of_cuts(word, value), "no error") << word << " " << value;
}

}  // namespace
}  // namespace wisp
