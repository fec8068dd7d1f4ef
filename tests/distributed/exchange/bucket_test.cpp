#include "distributed/exchange/bucket.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

std::vector<Segment> segments_of(const std::vector<int64_t>& sizes) {
  std::vector<Segment> segments;
  int64_t offset = 0;
  for (const int64_t numel : sizes) {
    const int id = static_cast<int>(segments.size());
    segments.push_back({id, concat("s", id), {numel}, offset, numel, true});
    offset += (numel + 15) / 16 * 16;
  }
  return segments;
}

/// All segments to one method of this scope, f32.
Plan plan_of(const std::vector<Segment>& segments, PlannedMethod method, BucketOptions options) {
  const std::vector<int> method_of(segments.size(), 0);
  return make_plan(segments, 4, method_of, {&method, 1}, options);
}

Plan dense_plan(const std::vector<Segment>& segments, BucketOptions options) {
  const std::vector<int> method_of(segments.size(), kDense);
  return make_plan(segments, 4, method_of, {}, options);
}

std::vector<int64_t> raw_bytes(const Plan& plan) {
  std::vector<int64_t> bytes;
  for (const Bucket& bucket : plan.buckets) bytes.push_back(bucket.raw_bytes);
  return bytes;
}

TEST(Plan, ClosesABucketWhenItsRawBytesReachTheBound) {
  const auto segments = segments_of({10, 10, 30, 5, 5});
  const Plan plan = dense_plan(segments, {.bucket_bytes = 80});
  EXPECT_EQ(raw_bytes(plan), (std::vector<int64_t>{80, 120, 40}));
  EXPECT_EQ(plan.buckets[0].dense, (std::vector<int>{0, 1}));
  EXPECT_EQ(plan.buckets[2].dense, (std::vector<int>{3, 4}));
}

TEST(Plan, GivesACompressedRunTheBucketsOfADenseOne) {
  const auto segments = segments_of({10, 10, 30, 5, 5, 100, 1});
  const auto dense = raw_bytes(dense_plan(segments, {.bucket_bytes = 64}));
  for (const Scope scope : {Scope::layer, Scope::bucket, Scope::model})
    EXPECT_EQ(raw_bytes(plan_of(segments, {scope}, {.bucket_bytes = 64})), dense);
}

TEST(Plan, TakesAnEighthOfTheModelWithinBounds) {
  const auto many = [](int64_t each) { return segments_of(std::vector<int64_t>(64, each)); };
  // 64 x 16 KiB = 1 MiB: an eighth is 128 KiB
  EXPECT_EQ(dense_plan(many(4096), {}).buckets.size(), 8u);
  // 64 KiB in all: one bucket of the least size
  EXPECT_EQ(dense_plan(many(256), {}).buckets.size(), 1u);
  // 64 x 8 MB = 512 MB: buckets close at 25 MB, so hold 4 segments
  EXPECT_EQ(dense_plan(many(2'000'000), {}).buckets.size(), 16u);
}

TEST(Plan, MakesEverySegmentABucketAtBucketBytesZero) {
  const auto segments = segments_of({10, 1, 30});
  EXPECT_EQ(raw_bytes(dense_plan(segments, {.bucket_bytes = 0})),
            (std::vector<int64_t>{40, 4, 120}));
}

TEST(Plan, GroupsSmallSegmentsIntoUnits) {
  const auto segments = segments_of({4, 4, 4, 4, 40, 4});
  const Plan plan = plan_of(segments, {Scope::layer}, {.bucket_bytes = 1000, .encode_bytes = 32});
  ASSERT_EQ(plan.units.size(), 4u);
  EXPECT_EQ(plan.units[0].segments, (std::vector<int>{0, 1}));
  EXPECT_EQ(plan.units[1].segments, (std::vector<int>{2, 3}));
  EXPECT_EQ(plan.units[2].segments, (std::vector<int>{4}));
  EXPECT_EQ(plan.units[3].segments, (std::vector<int>{5}));
  EXPECT_EQ(plan.units[0].fields.size(), 2u);
  EXPECT_EQ(plan.units[0].fields[1].slices[0].offset, 16);
  EXPECT_EQ(plan.units[0].numel, 8);
}

TEST(Plan, MakesEverySegmentAUnitAtEncodeBytesZero) {
  const auto segments = segments_of({4, 4, 4});
  EXPECT_EQ(
      plan_of(segments, {Scope::layer}, {.bucket_bytes = 1000, .encode_bytes = 0}).units.size(),
      3u);
}

TEST(Plan, LetsNoUnitReachIntoTheNextBucket) {
  const auto segments = segments_of({4, 4, 4, 4});
  const Plan plan = plan_of(segments, {Scope::layer}, {.bucket_bytes = 32, .encode_bytes = 1000});
  ASSERT_EQ(plan.units.size(), 2u);
  EXPECT_EQ(plan.units[1].segments, (std::vector<int>{2, 3}));
  EXPECT_EQ(plan.units[1].bucket, 1);
}

TEST(Plan, BucketScopeIsOneFieldPerBucket) {
  const auto segments = segments_of({3, 5, 20, 7});
  const Plan plan = plan_of(segments, {Scope::bucket}, {.bucket_bytes = 32, .encode_bytes = 0});
  ASSERT_EQ(plan.units.size(), 3u);
  ASSERT_EQ(plan.units[0].fields.size(), 1u);
  EXPECT_EQ(plan.units[0].fields[0].slices.size(), 2u);
  EXPECT_EQ(plan.units[0].fields[0].numel, 8);
}

TEST(Plan, ModelScopeIsOneFieldExchangedWithTheLastBucket) {
  const auto segments = segments_of({3, 5, 20, 7});
  const Plan plan = plan_of(segments, {Scope::model}, {.bucket_bytes = 32});
  ASSERT_EQ(plan.units.size(), 1u);
  EXPECT_EQ(plan.units[0].segments, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(plan.units[0].fields[0].numel, 35);
  EXPECT_EQ(plan.units[0].bucket, 2);
  EXPECT_TRUE(plan.buckets[0].units.empty());
  EXPECT_EQ(plan.buckets[2].units, (std::vector<int>{0}));
}

TEST(Plan, KeepsDenseSegmentsAndMethodsApart) {
  const auto segments = segments_of({4, 4, 4, 4, 4});
  const std::vector<int> method_of = {0, kDense, 1, 0, 1};
  const PlannedMethod methods[2];
  const Plan plan =
      make_plan(segments, 4, method_of, methods, {.bucket_bytes = 1000, .encode_bytes = 1000});
  ASSERT_EQ(plan.units.size(), 2u);
  EXPECT_EQ(plan.units[0].segments, (std::vector<int>{0, 3}));
  EXPECT_EQ(plan.units[1].segments, (std::vector<int>{2, 4}));
  EXPECT_EQ(plan.buckets[0].dense, (std::vector<int>{1}));
}

TEST(Plan, RefusesAFieldThatMixesDecayAndNoneIfItsMethodDecays) {
  auto segments = segments_of({4, 4});
  segments[1].decay = false;
  EXPECT_NO_THROW(plan_of(segments, {Scope::layer, true}, {}));
  EXPECT_EQ(plan_of(segments, {Scope::bucket, false}, {}).units[0].fields[0].slices.size(), 2u);
  const std::string error = error_of([&] { plan_of(segments, {Scope::bucket, true}, {}); });
  EXPECT_NE(error.find("mixes weight decay"), std::string::npos) << error;
  EXPECT_NE(error.find("s1"), std::string::npos) << error;
}

TEST(Plan, RefusesAModelWithoutParameters) { EXPECT_THROW(dense_plan({}, {}), Error); }

TEST(Plan, HashTellsNamesMethodsAndBordersApart) {
  auto segments = segments_of({4, 4, 4});
  const uint64_t hash = plan_of(segments, {Scope::layer}, {.bucket_bytes = 32}).hash;
  EXPECT_EQ(plan_of(segments, {Scope::layer}, {.bucket_bytes = 32}).hash, hash);
  EXPECT_NE(plan_of(segments, {Scope::layer}, {.bucket_bytes = 16}).hash, hash);
  EXPECT_NE(dense_plan(segments, {.bucket_bytes = 32}).hash, hash);
  segments[2].name = "other";
  EXPECT_NE(plan_of(segments, {Scope::layer}, {.bucket_bytes = 32}).hash, hash);
}

}  // namespace
}  // namespace wisp
