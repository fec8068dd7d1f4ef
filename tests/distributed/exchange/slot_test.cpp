#include "distributed/exchange/slot.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

Message message(Collective kind, int64_t bytes, DType dtype = DType::u8) {
  return {.kind = kind, .dtype = dtype, .bytes = bytes};
}

/// A cut into buckets. Bucket b has units_of_bucket[b] units of one segment, then a dense segment.
Cut cut_with(const std::vector<int>& units_of_bucket) {
  Cut cut;
  int segment = 0;
  for (const int units : units_of_bucket) {
    Bucket bucket;
    for (int i = 0; i < units; ++i) {
      bucket.units.push_back(static_cast<int>(cut.units.size()));
      cut.units.push_back(
          {.segments = {segment++}, .bucket = static_cast<int>(cut.buckets.size())});
    }
    bucket.dense.push_back(segment++);
    cut.buckets.push_back(bucket);
  }
  return cut;
}

UnitRounds compressed(std::vector<Message> messages) { return {true, std::move(messages)}; }

TEST(Slot, DoesAllRoundsOfABucketBeforeTheNext) {
  const Cut cut = cut_with({1, 1});
  const UnitRounds two =
      compressed({message(Collective::all_to_all, 8), message(Collective::all_gather, 8)});
  const auto slots = make_slots(cut, std::vector<UnitRounds>{two, two}, DType::f32);
  ASSERT_EQ(slots.size(), 6u);  // for each bucket: dense, round 0, round 1
  for (size_t b = 0; b < 2; ++b) {
    for (size_t s = 0; s < 3; ++s) EXPECT_EQ(slots[3 * b + s].bucket, static_cast<int>(b));
    EXPECT_EQ(slots[3 * b].dense.size(), 1u);
    EXPECT_EQ(slots[3 * b + 1].message.kind, Collective::all_to_all);
    EXPECT_EQ(slots[3 * b + 2].message.kind, Collective::all_gather);
    EXPECT_EQ(slots[3 * b + 2].round, 1);
  }
}

TEST(Slot, GroupsWhatCanTravelTogether) {
  const Cut cut = cut_with({4});
  const auto gather = compressed({message(Collective::all_gather, 8)});
  const auto reduce = compressed({message(Collective::all_reduce, 8, DType::u32)});
  const auto slots =
      make_slots(cut, std::vector<UnitRounds>{gather, reduce, gather, reduce}, DType::f32);
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(slots[1].units, (std::vector<int>{0, 2}));
  EXPECT_EQ(slots[2].units, (std::vector<int>{1, 3}));
}

TEST(Slot, PutsEqualReductionsIntoTheDenseSlot) {
  const Cut cut = cut_with({1});
  const auto sum = compressed({message(Collective::all_reduce, 8, DType::f32)});
  const auto slots = make_slots(cut, std::vector<UnitRounds>{sum}, DType::f32);
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_EQ(slots[0].units, (std::vector<int>{0}));
  EXPECT_EQ(slots[0].dense, (std::vector<int>{1}));
}

TEST(Slot, SendsUnitsThatGoDenseWithTheDenseSegments) {
  const Cut cut = cut_with({2});
  const auto gather = compressed({message(Collective::all_gather, 8)});
  const auto slots = make_slots(cut, std::vector<UnitRounds>{{}, gather}, DType::f32);
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].dense, (std::vector<int>{0, 2}));
  EXPECT_EQ(slots[1].units, (std::vector<int>{1}));
}

TEST(Slot, IsTheSameOnRanksWithOtherPairs) {
  const Cut cut = cut_with({2});
  Message a = message(Collective::pair, 8), b = a;
  a.to = 1;
  const auto busy =
      make_slots(cut, std::vector<UnitRounds>{compressed({a}), compressed({b})}, DType::f32);
  const auto idle =
      make_slots(cut, std::vector<UnitRounds>{compressed({b}), compressed({b})}, DType::f32);
  EXPECT_EQ(busy.size(), 3u);
  EXPECT_EQ(hash_slots(busy, 1), hash_slots(idle, 1));
}

TEST(Slot, HashTellsOrderAndKindsApart) {
  const Cut cut = cut_with({1});
  const auto hash_of = [&](Message m) {
    return hash_slots(make_slots(cut, std::vector<UnitRounds>{compressed({m})}, DType::f32), 1);
  };
  const Message gather = message(Collective::all_gather, 8);
  Message variable = gather, maximum = message(Collective::all_reduce, 8, DType::u32);
  variable.variable = true;
  Message sum = maximum;
  maximum.op = ReduceOp::max;
  EXPECT_EQ(hash_of(gather), hash_of(gather));
  EXPECT_NE(hash_of(gather), hash_of(variable));
  EXPECT_NE(hash_of(sum), hash_of(maximum));
}

}  // namespace
}  // namespace wisp
