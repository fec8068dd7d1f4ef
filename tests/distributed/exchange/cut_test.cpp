#include "distributed/exchange/cut.h"

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

/// A cut that assigns all segments, of f32, to one method.
Cut cut_of(const std::vector<Segment>& segments, CutMethod method, BucketOptions options,
           Device device = {}) {
  const std::vector<int> method_of(segments.size(), 0);
  return make_cut(segments, 4, method_of, {&method, 1}, options, device);
}

Cut dense_cut(const std::vector<Segment>& segments, BucketOptions options, Device device = {}) {
  const std::vector<int> method_of(segments.size(), kDense);
  return make_cut(segments, 4, method_of, {}, options, device);
}

std::vector<int64_t> raw_bytes(const Cut& cut) {
  std::vector<int64_t> bytes;
  for (const Bucket& bucket : cut.buckets) bytes.push_back(bucket.raw_bytes);
  return bytes;
}

TEST(Cut, ClosesABucketWhenItsRawBytesReachTheBound) {
  const auto segments = segments_of({10, 10, 30, 5, 5});
  const Cut cut = dense_cut(segments, {.bucket_bytes = 80});
  EXPECT_EQ(raw_bytes(cut), (std::vector<int64_t>{80, 120, 40}));
  EXPECT_EQ(cut.buckets[0].dense, (std::vector<int>{0, 1}));
  EXPECT_EQ(cut.buckets[2].dense, (std::vector<int>{3, 4}));
}

TEST(Cut, GivesACompressedRunTheBucketsOfADenseOne) {
  const auto segments = segments_of({10, 10, 30, 5, 5, 100, 1});
  const auto dense = raw_bytes(dense_cut(segments, {.bucket_bytes = 64}));
  for (const Scope scope : {Scope::layer, Scope::bucket, Scope::model})
    EXPECT_EQ(raw_bytes(cut_of(segments, {scope}, {.bucket_bytes = 64})), dense);
}

TEST(Cut, TakesAnEighthOfTheModelWithinBounds) {
  const auto many = [](int64_t each) { return segments_of(std::vector<int64_t>(64, each)); };
  // 64 x 16 KiB = 1 MiB, so a bucket has an eighth, 128 KiB
  EXPECT_EQ(dense_cut(many(4096), {}).buckets.size(), 8u);
  // 64 KiB in all make one bucket of the least size
  EXPECT_EQ(dense_cut(many(256), {}).buckets.size(), 1u);
  // 64 x 8 MB = 512 MB: buckets close at 25 MB, so each holds 4 segments
  EXPECT_EQ(dense_cut(many(2'000'000), {}).buckets.size(), 16u);
}

/// A GPU needs as many launches for a unit of 4 KiB as for one of 4 MiB.
TEST(Cut, TakesLargerBucketsAndUnitsOnAGpu) {
  const Device gpu{Device::Kind::cuda, 0};
  const auto model_of = [](int64_t each) { return segments_of(std::vector<int64_t>(64, each)); };
  const auto units = [&](int64_t each, BucketOptions options) {
    return cut_of(model_of(each), {Scope::layer}, options, gpu).units.size();
  };
  // 1 MiB in all makes one bucket and one unit; on the CPU it makes 8 and 16
  EXPECT_EQ(dense_cut(model_of(4096), {}, gpu).buckets.size(), 1u);
  EXPECT_EQ(units(4096, {}), 1u);
  EXPECT_EQ(cut_of(model_of(4096), {Scope::layer}, {}).units.size(), 16u);
  // 64 x 2 MB make the same buckets as on the CPU, but each is one unit
  EXPECT_EQ(dense_cut(model_of(500'000), {}, gpu).buckets.size(), 8u);
  EXPECT_EQ(units(500'000, {}), 8u);
  // explicit sizes stay as they are
  EXPECT_EQ(units(4096, {.bucket_bytes = 0}), 64u);
  EXPECT_EQ(units(4096, {.encode_bytes = 0}), 64u);
}

TEST(Cut, MakesEverySegmentABucketAtBucketBytesZero) {
  const auto segments = segments_of({10, 1, 30});
  EXPECT_EQ(raw_bytes(dense_cut(segments, {.bucket_bytes = 0})),
            (std::vector<int64_t>{40, 4, 120}));
}

TEST(Cut, GroupsSmallSegmentsIntoUnits) {
  const auto segments = segments_of({4, 4, 4, 4, 40, 4});
  const Cut cut = cut_of(segments, {Scope::layer}, {.bucket_bytes = 1000, .encode_bytes = 32});
  ASSERT_EQ(cut.units.size(), 4u);
  EXPECT_EQ(cut.units[0].segments, (std::vector<int>{0, 1}));
  EXPECT_EQ(cut.units[1].segments, (std::vector<int>{2, 3}));
  EXPECT_EQ(cut.units[2].segments, (std::vector<int>{4}));
  EXPECT_EQ(cut.units[3].segments, (std::vector<int>{5}));
  EXPECT_EQ(cut.units[0].fields.size(), 2u);
  EXPECT_EQ(cut.units[0].fields[1].slices[0].offset, 16);
  EXPECT_EQ(cut.units[0].numel, 8);
}

TEST(Cut, MakesEverySegmentAUnitAtEncodeBytesZero) {
  const auto segments = segments_of({4, 4, 4});
  EXPECT_EQ(
      cut_of(segments, {Scope::layer}, {.bucket_bytes = 1000, .encode_bytes = 0}).units.size(), 3u);
}

TEST(Cut, LetsNoUnitReachIntoTheNextBucket) {
  const auto segments = segments_of({4, 4, 4, 4});
  const Cut cut = cut_of(segments, {Scope::layer}, {.bucket_bytes = 32, .encode_bytes = 1000});
  ASSERT_EQ(cut.units.size(), 2u);
  EXPECT_EQ(cut.units[1].segments, (std::vector<int>{2, 3}));
  EXPECT_EQ(cut.units[1].bucket, 1);
}

TEST(Cut, BucketScopeIsOneFieldPerBucket) {
  const auto segments = segments_of({3, 5, 20, 7});
  const Cut cut = cut_of(segments, {Scope::bucket}, {.bucket_bytes = 32, .encode_bytes = 0});
  ASSERT_EQ(cut.units.size(), 3u);
  ASSERT_EQ(cut.units[0].fields.size(), 1u);
  EXPECT_EQ(cut.units[0].fields[0].slices.size(), 2u);
  EXPECT_EQ(cut.units[0].fields[0].numel, 8);
}

TEST(Cut, ModelScopeIsOneFieldExchangedWithTheLastBucket) {
  const auto segments = segments_of({3, 5, 20, 7});
  const Cut cut = cut_of(segments, {Scope::model}, {.bucket_bytes = 32});
  ASSERT_EQ(cut.units.size(), 1u);
  EXPECT_EQ(cut.units[0].segments, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(cut.units[0].fields[0].numel, 35);
  EXPECT_EQ(cut.units[0].bucket, 2);
  EXPECT_TRUE(cut.buckets[0].units.empty());
  EXPECT_EQ(cut.buckets[2].units, (std::vector<int>{0}));
}

TEST(Cut, KeepsDenseSegmentsAndMethodsApart) {
  const auto segments = segments_of({4, 4, 4, 4, 4});
  const std::vector<int> method_of = {0, kDense, 1, 0, 1};
  const CutMethod methods[2];
  const Cut cut =
      make_cut(segments, 4, method_of, methods, {.bucket_bytes = 1000, .encode_bytes = 1000}, {});
  ASSERT_EQ(cut.units.size(), 2u);
  EXPECT_EQ(cut.units[0].segments, (std::vector<int>{0, 3}));
  EXPECT_EQ(cut.units[1].segments, (std::vector<int>{2, 4}));
  EXPECT_EQ(cut.buckets[0].dense, (std::vector<int>{1}));
}

/// Rows are the words of an embedding, the gates of a recurrent layer, and the output channels of a
/// convolution.
TEST(Cut, TakesTheFirstDimensionForRows) {
  const auto rows_of = [](const Shape& shape) {
    return field_of({.shape = shape, .numel = shape.numel()}).rows;
  };
  EXPECT_EQ(rows_of({28'869, 650}), 28'869);
  EXPECT_EQ(rows_of({2600, 650}), 2600);
  EXPECT_EQ(rows_of({64, 3, 3, 16}), 64);
  EXPECT_EQ(rows_of({2600}), 1);
}

TEST(Cut, RefusesAFieldThatMixesDecayAndNoneIfItsMethodDecays) {
  auto segments = segments_of({4, 4});
  segments[1].decay = false;
  EXPECT_NO_THROW(cut_of(segments, {Scope::layer, true}, {}));
  EXPECT_EQ(cut_of(segments, {Scope::bucket, false}, {}).units[0].fields[0].slices.size(), 2u);
  const std::string error = error_of([&] { cut_of(segments, {Scope::bucket, true}, {}); });
  EXPECT_NE(error.find("has no weight decay"), std::string::npos) << error;
  EXPECT_NE(error.find("s1"), std::string::npos) << error;
}

/// Sizes beyond 32 bits are refused where a method encodes them, and dense segments have any size.
TEST(Cut, RefusesAUnitWhoseElementsCannotBeNumbered) {
  constexpr int64_t kMost = (int64_t{1} << 32) - 1, kHalf = int64_t{1} << 31;
  EXPECT_EQ(cut_of(segments_of({kMost}), {Scope::layer}, {}).units[0].numel, kMost);
  const std::string alone = error_of([&] {
    cut_of(segments_of({8, kMost + 1}), {Scope::layer}, {});
  });
  EXPECT_EQ(alone,
            "parameter s1 of 4294967296 elements: a method encodes at most 4294967295 elements at "
            "once, so send it dense, by a rule of compression.policy");
  const auto two = segments_of({kHalf, kHalf});
  EXPECT_EQ(cut_of(two, {Scope::layer}, {}).units.size(), 2u);
  const BucketOptions large{.bucket_bytes = 32 * kHalf, .encode_bytes = 32 * kHalf};
  for (const std::string& together : {error_of([&] { cut_of(two, {Scope::model}, {}); }),
                                      error_of([&] { cut_of(two, {Scope::bucket}, large); }),
                                      error_of([&] { cut_of(two, {Scope::layer}, large); })}) {
    EXPECT_NE(together.find("parameter s1"), std::string::npos) << together;
    EXPECT_NE(together.find("compression.encode_bytes or bucket_bytes"), std::string::npos)
        << together;
  }
  EXPECT_EQ(dense_cut(segments_of({16 * kMost, 16 * kMost}), {}).buckets.size(), 2u);
}

TEST(Cut, RefusesAModelWithoutParameters) { EXPECT_THROW(dense_cut({}, {}), Error); }

TEST(Cut, HashTellsNamesMethodsAndBordersApart) {
  auto segments = segments_of({4, 4, 4});
  const uint64_t hash = cut_of(segments, {Scope::layer}, {.bucket_bytes = 32}).hash;
  EXPECT_EQ(cut_of(segments, {Scope::layer}, {.bucket_bytes = 32}).hash, hash);
  EXPECT_NE(cut_of(segments, {Scope::layer}, {.bucket_bytes = 16}).hash, hash);
  EXPECT_NE(dense_cut(segments, {.bucket_bytes = 32}).hash, hash);
  segments[2].name = "other";
  EXPECT_NE(cut_of(segments, {Scope::layer}, {.bucket_bytes = 32}).hash, hash);
}

}  // namespace
}  // namespace wisp
