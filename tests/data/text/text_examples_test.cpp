#include "data/text/text_examples.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "data/loader.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

/// A text whose token i is i.
TextExamples counted(int64_t tokens, int64_t window) {
  std::vector<int32_t> all(static_cast<size_t>(tokens));
  std::iota(all.begin(), all.end(), 0);
  return TextExamples("text", std::move(all), tokens, window);
}

struct Read {
  std::map<int32_t, int> targets;  // how often each token was a target
  int64_t ignored = 0;             // as counted by the batches
  int64_t batches = 0;
};

/// Reads an epoch of all workers. Checks that each target is the token after its input, and that a
/// column continues where it stopped.
Read read(const TextExamples& text, Deal deal) {
  Read all;
  for (deal.rank = 0; deal.rank < deal.workers; ++deal.rank) {
    std::map<int64_t, int32_t> next;  // next token of each column of this worker
    Loader loader(text, deal);
    loader.start_epoch(0);
    while (const auto batch = loader.next()) {
      ++all.batches;
      const int64_t positions = batch->inputs[0].shape()[0], columns = batch->inputs[0].shape()[1];
      EXPECT_EQ(batch->count, positions * columns);
      EXPECT_EQ(batch->of_worker, batch->count * deal.accumulate);
      EXPECT_EQ(batch->of_step, batch->count * deal.pieces());
      int64_t ignored = 0;
      for (int64_t i = 0; i < batch->count; ++i) {
        const int32_t input = batch->inputs[0].data<int32_t>()[i];
        const int32_t target = batch->targets.data<int32_t>()[i];
        ignored += target == -1;
        if (target == -1) continue;
        EXPECT_EQ(target, input + 1);
        ++all.targets[target];
        const int64_t column = batch->index % deal.accumulate * columns + i % columns;
        const bool goes_on = !batch->begins || i >= columns;
        EXPECT_EQ(input, goes_on ? next[column] : input);
        next[column] = target;
      }
      EXPECT_EQ(batch->ignored, ignored);
      all.ignored += ignored;
    }
  }
  return all;
}

TEST(TextExamples, AnEvaluationReadsEveryTokenOnce) {
  for (const int64_t tokens : {25, 26, 30, 36, 37, 99}) {
    for (const int64_t window : {1, 4, 5, 1000}) {
      for (const Deal& deal : {Deal{.batch = 12}, Deal{.batch = 12, .workers = 3},
                               Deal{.batch = 12, .workers = 2, .accumulate = 3}}) {
        Deal evaluation = deal;
        evaluation.training = false;
        const Read found = read(counted(tokens, window), evaluation);
        const std::string what = concat(tokens, " tokens, window ", window);
        EXPECT_EQ(std::ssize(found.targets), tokens - 1) << what;
        for (const auto& [token, times] : found.targets) EXPECT_EQ(times, 1) << what << token;
        const int64_t over = (tokens - 1) % 12;
        EXPECT_EQ(found.ignored, over > 0 ? 12 - over : 0) << what;
      }
    }
  }
}

TEST(TextExamples, TrainingReadsColumnsOfOneLength) {
  const Read found = read(counted(99, 3), {.batch = 12, .workers = 2});  // 98 = 12 · 8 + 2
  EXPECT_EQ(std::ssize(found.targets), 96);
  EXPECT_EQ(found.ignored, 0);
  EXPECT_EQ(found.batches, 2 * 3);  // windows of 3, 3 and 2
}

TEST(TextExamples, EvaluationHasAsManyBatchesAsTraining) {
  for (const int64_t tokens : {25, 26, 47, 48, 49, 60, 61}) {
    const Deal deal{.batch = 12, .accumulate = 2};
    Deal evaluation = deal;
    evaluation.training = false;
    EXPECT_EQ(counted(tokens, 2).epoch(0, deal).size(),
              counted(tokens, 2).epoch(0, evaluation).size())
        << tokens;
  }
}

TEST(TextExamples, RefusesWhatCannotBeCut) {
  EXPECT_EQ(error_of([] { counted(12, 4).epoch(0, {.batch = 12}); }),
            "text: 12 tokens for 12 columns (train.batch), expected at least 13");
  EXPECT_EQ(error_of([] { counted(12, 4).epoch(0, {.batch = 12, .training = false}); }),
            "text: 12 tokens for 12 columns (train.eval_batch; 0: train.batch), expected at least "
            "13");
  EXPECT_EQ(error_of([] {
              TextExamples("text", {0, 3, 1}, 3, 4);
            }),
            "text: token 1 is 3, expected 0 to 2");
  EXPECT_EQ(error_of([] { TextExamples("text", {0}, 1, 0); }),
            "text: a window of 0 positions, expected at least 1");
}

}  // namespace
}  // namespace wisp
