#include "data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/examples.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

using Order = std::vector<int64_t>;

TEST(BlockOrder, HasEachSampleAtMostOnce) {
  for (const int64_t count : {1, 7, 100, 1001}) {
    for (const int64_t block : {1, 8, 64, 5000}) {
      for (const int64_t batch : {1, 4, 7}) {
        if (count < batch) continue;
        const Order order = block_order(count, block, batch, 3, 2);
        EXPECT_EQ(std::ssize(order), count / batch * batch);
        EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), order.size())
            << count << " samples in blocks of " << block << ", batch " << batch;
        EXPECT_LT(*std::max_element(order.begin(), order.end()), count);
        EXPECT_GE(*std::min_element(order.begin(), order.end()), 0);
      }
    }
  }
}

TEST(BlockOrder, DependsOnSeedAndEpoch) {
  const Order order = block_order(1000, 16, 10, 1, 0);
  EXPECT_EQ(block_order(1000, 16, 10, 1, 0), order);
  EXPECT_NE(block_order(1000, 16, 10, 1, 1), order);
  EXPECT_NE(block_order(1000, 16, 10, 2, 0), order);
}

TEST(BlockOrder, OfALaneNeedsFewBlocksAtATime) {
  constexpr int64_t kBlock = 20, kBatch = 5, kCount = 10000;
  const Order order = block_order(kCount, kBlock, kBatch, 1, 0);
  for (int64_t lane = 0; lane < kBatch; ++lane) {
    std::vector<int64_t> begins(kCount / kBlock, -1), ends(kCount / kBlock, -1);
    for (int64_t step = 0; step < kCount / kBatch; ++step) {
      const auto block =
          static_cast<size_t>(order[static_cast<size_t>(step * kBatch + lane)] / kBlock);
      if (begins[block] < 0) begins[block] = step;
      ends[block] = step;
    }
    int64_t most = 0;
    for (int64_t step = 0; step < kCount / kBatch; ++step) {
      int64_t open = 0;
      for (size_t block = 0; block < begins.size(); ++block)
        open += begins[block] >= 0 && begins[block] <= step && step <= ends[block];
      most = std::max(most, open);
    }
    // a sample of an old block may be drawn late, so a few blocks more are begun and not ended
    EXPECT_LE(most, 8) << "lane " << lane;
  }
}

TEST(BlockOrder, IsNearlyAsGoodAsAPermutation) {
  for (const int64_t block : {16, 256, 1024})
    EXPECT_GE(shuffle_quality(block_order(1'281'167, block, 256, 1, 0)), 0.99) << block;
}

TEST(ShuffleQuality, IsThatOfStreaming) {
  Order in_order(1000), permuted = shuffled(1000, 9, 0);
  for (size_t i = 0; i < in_order.size(); ++i) in_order[i] = static_cast<int64_t>(i);
  EXPECT_EQ(shuffle_quality(in_order), 0.0);
  EXPECT_NEAR(shuffle_quality(permuted), 1.0, 0.02);
  EXPECT_TRUE(std::isnan(shuffle_quality({0, 1})));
}

TEST(CutSamples, GivesEachWorkerItsLanesOfBlocks) {
  const Deal all{.batch = 12, .seed = 4};
  std::vector<Order> steps;
  for (const Piece& piece : cut_samples(500, 3, all, "test", {.block = 8}))
    steps.push_back(piece.rows);
  EXPECT_EQ(steps.size(), 500u / 12);
  for (const int workers : {2, 3, 4}) {
    std::vector<Order> together(steps.size());
    for (int rank = 0; rank < workers; ++rank) {
      const Deal deal{.batch = 12, .workers = workers, .rank = rank, .seed = 4};
      const std::vector<Piece> pieces = cut_samples(500, 3, deal, "test", {.block = 8});
      ASSERT_EQ(pieces.size(), steps.size());
      for (size_t s = 0; s < pieces.size(); ++s)
        together[s].insert(together[s].end(), pieces[s].rows.begin(), pieces[s].rows.end());
    }
    EXPECT_EQ(together, steps) << workers << " workers";
  }
}

/// A step has three of twenty samples, each twice. The second of two workers has the second half.
TEST(CutSamples, RepeatsEachSampleOfAStep) {
  for (const int64_t block : {0, 4}) {
    std::vector<Order> steps;
    for (const Piece& piece :
         cut_samples(20, 1, {.batch = 6, .seed = 4}, "test", {.block = block, .repeats = 2}))
      steps.push_back(piece.rows);
    ASSERT_EQ(steps.size(), 3u);
    std::set<int64_t> seen;
    for (const Order& step : steps) {
      ASSERT_EQ(step.size(), 6u);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_LT(step[i], 20);
        EXPECT_EQ(step[i + 3], step[i] + 20);
        EXPECT_TRUE(seen.insert(step[i]).second) << step[i];
      }
    }
    const Deal second{.batch = 6, .workers = 2, .rank = 1, .seed = 4};
    const std::vector<Piece> pieces =
        cut_samples(20, 1, second, "test", {.block = block, .repeats = 2});
    ASSERT_EQ(pieces.size(), 3u);
    for (size_t s = 0; s < 3; ++s)
      EXPECT_EQ(pieces[s].rows, Order(steps[s].begin() + 3, steps[s].end()));
  }
  const auto thrice = [] { cut_samples(20, 1, {.batch = 4}, "photos", {.repeats = 3}); };
  EXPECT_EQ(error_of(thrice),
            "photos: a batch of 4 rows does not hold 3 of each of its samples, expected a multiple "
            "(train.batch, data.repeats)");
}

TEST(CutSamples, RefusesTooFewForBlocks) {
  EXPECT_EQ(error_of([] { cut_samples(3, 0, {.batch = 4}, "photos", {.block = 2}); }),
            "photos: 3 samples, expected at least the 4 of one step");
  EXPECT_EQ(
      error_of([] { block_order(3, 0, 2, 0, 0); }),
      "block_order: 3 samples in blocks of 0 for a batch of 2, expected at least a batch, and "
      "blocks of 1 or more");
}

}  // namespace
}  // namespace wisp
