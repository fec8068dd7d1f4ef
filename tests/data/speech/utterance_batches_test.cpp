#include "data/speech/utterance_batches.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "core/random.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

std::vector<int64_t> lengths(int64_t count) {
  const Philox philox(3, 0, 0);
  std::vector<int64_t> frames;
  for (int64_t i = 0; i < count; ++i)
    frames.push_back(50 + philox.below(static_cast<uint64_t>(i), 600));
  return frames;
}

/// For each step, the pieces of all ranks, by (rank, micro-batch).
std::vector<std::vector<Piece>> steps_of(const std::vector<int64_t>& frames, Deal deal,
                                         int64_t epoch, int64_t budget = 0,
                                         const std::vector<int64_t>& most = {}) {
  std::vector<std::vector<Piece>> steps;
  for (deal.rank = 0; deal.rank < deal.workers; ++deal.rank) {
    const std::vector<Piece> pieces =
        cut_utterances(frames, most.empty() ? frames : most, budget, epoch, deal, "speech");
    steps.resize(pieces.size() / static_cast<size_t>(deal.accumulate));
    for (size_t i = 0; i < pieces.size(); ++i)
      steps[i / static_cast<size_t>(deal.accumulate)].push_back(pieces[i]);
  }
  return steps;
}

std::multiset<int64_t> rows_of(const std::vector<Piece>& step) {
  std::multiset<int64_t> rows;
  for (const Piece& piece : step) rows.insert(piece.rows.begin(), piece.rows.end());
  return rows;
}

int64_t longest(const std::vector<int64_t>& frames, const std::vector<Piece>& step) {
  int64_t most = 0;
  for (const int64_t row : rows_of(step)) most = std::max(most, frames[static_cast<size_t>(row)]);
  return most;
}

TEST(UtteranceBatches, AStepIsTheSameForAnyWorkers) {
  const std::vector<int64_t> frames = lengths(101);
  for (const int64_t epoch : {0, 1, 5}) {
    const auto one = steps_of(frames, {.batch = 8, .seed = 7}, epoch);
    const auto four = steps_of(frames, {.batch = 8, .workers = 4, .seed = 7}, epoch);
    const auto two =
        steps_of(frames, {.batch = 8, .workers = 2, .accumulate = 2, .seed = 7}, epoch);
    ASSERT_EQ(one.size(), 12u);
    ASSERT_EQ(four.size(), one.size());
    ASSERT_EQ(two.size(), one.size());
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(rows_of(one[i]), rows_of(four[i]));
      EXPECT_EQ(rows_of(one[i]), rows_of(two[i]));
    }
  }
}

TEST(UtteranceBatches, PiecesShareTheWorkAndFall) {
  const std::vector<int64_t> frames = lengths(400);
  for (const auto& step : steps_of(frames, {.batch = 16, .workers = 4}, 3)) {
    int64_t least = 1 << 30, most = 0, longest_utterance = longest(frames, step);
    for (const Piece& piece : step) {
      EXPECT_EQ(piece.count, 4);
      EXPECT_EQ(piece.of_worker, 4);
      EXPECT_EQ(piece.of_step, 16);
      int64_t sum = 0;
      for (size_t i = 0; i < piece.rows.size(); ++i) {
        sum += frames[static_cast<size_t>(piece.rows[i])];
        if (i > 0) {
          EXPECT_GE(frames[static_cast<size_t>(piece.rows[i - 1])],
                    frames[static_cast<size_t>(piece.rows[i])]);
        }
      }
      EXPECT_EQ(piece.work, sum);
      least = std::min(least, sum);
      most = std::max(most, sum);
    }
    EXPECT_LE(most - least, longest_utterance);
  }
}

TEST(UtteranceBatches, TheFirstEpochIsSortedButForTheLongest) {
  const std::vector<int64_t> frames = lengths(80);
  const auto steps = steps_of(frames, {.batch = 8}, 0);
  EXPECT_EQ(longest(frames, steps[0]), *std::max_element(frames.begin(), frames.end()));
  for (size_t i = 2; i < steps.size(); ++i)
    EXPECT_LE(longest(frames, steps[i - 1]), longest(frames, steps[i]));
  const std::vector<int64_t> more = lengths(87);
  const auto furthest = std::max_element(more.begin(), more.end()) - more.begin();
  for (uint64_t seed = 0; seed < 40; ++seed)  // 7 of 87 are left out
    EXPECT_EQ(rows_of(steps_of(more, {.batch = 8, .seed = seed}, 0)[0]).count(furthest), 1u);
  EXPECT_NE(rows_of(steps_of(frames, {.batch = 8}, 1)[1]),
            rows_of(steps_of(frames, {.batch = 8}, 2)[1]));
}

TEST(UtteranceBatches, EveryEpochLeavesOutOthers) {
  const std::vector<int64_t> frames = lengths(43);
  std::set<int64_t> left_out;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    std::set<int64_t> read;
    for (const auto& step : steps_of(frames, {.batch = 8}, epoch))
      for (const int64_t row : rows_of(step)) EXPECT_TRUE(read.insert(row).second);
    EXPECT_EQ(read.size(), 40u);
    for (int64_t i = 0; i < 43; ++i)
      if (!read.count(i)) left_out.insert(i);
  }
  EXPECT_GT(left_out.size(), 20u);
}

TEST(UtteranceBatches, ABudgetOfFramesBoundsEachStep) {
  const std::vector<int64_t> frames = lengths(300);
  const Deal deal{.workers = 3};
  std::multiset<int64_t> all;
  const auto steps = steps_of(frames, deal, 2, {5000});
  EXPECT_EQ(steps.size(), steps_of(frames, deal, 0, {5000}).size());
  for (const auto& step : steps) {
    const auto rows = rows_of(step);
    const int64_t joined = longest(frames, step) < 100 ? 2 : 0;  // fewer than pieces
    EXPECT_LE((std::ssize(rows) - joined) * longest(frames, step), 5000);
    for (const Piece& piece : step) {
      EXPECT_EQ(piece.of_step, static_cast<int64_t>(rows.size()));
      EXPECT_EQ(piece.count, std::ssize(piece.rows));
    }
    all.insert(rows.begin(), rows.end());
  }
  EXPECT_EQ(all.size(), 300u);
}

TEST(UtteranceBatches, ABudgetMakesTheSameStepsWhateverAnEpochDraws) {
  const std::vector<int64_t> usual = lengths(300);
  std::vector<int64_t> most;
  for (const int64_t frames : usual) most.push_back(frames + frames / 8);
  std::set<std::multiset<int64_t>> first;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<int64_t> frames;
    const Philox draw(5, static_cast<uint64_t>(epoch), 0);
    for (size_t i = 0; i < usual.size(); ++i)
      frames.push_back(most[i] - draw.below64(i, usual[i] / 4 + 1));
    std::set<std::multiset<int64_t>> all;
    const auto steps = steps_of(frames, {.workers = 2, .seed = 9}, epoch, {4000}, most);
    for (const auto& step : steps) {
      all.insert(rows_of(step));
      EXPECT_LE(std::ssize(rows_of(step)) * longest(most, step), 4000 + longest(most, step));
      for (const Piece& piece : step)
        for (size_t i = 1; i < piece.rows.size(); ++i)
          EXPECT_GE(frames[static_cast<size_t>(piece.rows[i - 1])],
                    frames[static_cast<size_t>(piece.rows[i])]);
    }
    if (epoch == 0) first = all;
    EXPECT_TRUE(all == first) << epoch;
  }
}

TEST(UtteranceBatches, AnEvaluationReadsAllOnce) {
  const std::vector<int64_t> frames = lengths(43);
  std::multiset<int64_t> all;
  int64_t before = 1 << 30;
  for (const auto& step : steps_of(frames, {.batch = 8, .training = false}, 0)) {
    EXPECT_LE(longest(frames, step), before);
    before = longest(frames, step);
    for (const int64_t row : rows_of(step)) all.insert(row);
  }
  EXPECT_EQ(all.size(), 43u);
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 43u);
}

TEST(UtteranceBatches, NeedAStep) {
  const auto complaint = [](const std::vector<int64_t>& frames, const Deal& deal,
                            int64_t budget = 0) {
    return error_of([&] { cut_utterances(frames, frames, budget, 0, deal, "an4 train"); });
  };
  const std::vector<int64_t> five(5, 1);
  EXPECT_EQ(complaint(five, {.batch = 8}), "an4 train: 5 utterances, expected at least 8");
  EXPECT_EQ(complaint(five, {.batch = 6, .workers = 4}),
            "an4 train: a batch of 6 is not the same number of samples for 4 workers and 1 "
            "micro-batches");
  EXPECT_EQ(complaint({90, 300, 20}, {.workers = 2}, {500}),
            "an4 train: data.frames is 500, but with 2 workers x micro-batches and a longest "
            "utterance of 300 frames it must be at least 600");
}

}  // namespace
}  // namespace wisp
