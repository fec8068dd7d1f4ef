// Tests of the ops that add to the counts of a metric: correct classes, edits, means.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops.h"
#include "tests/support/leaves.h"
#include "tests/support/ops_value.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

class Counts : public OpsValue {};

INSTANTIATE_TEST_SUITE_P(Types, Counts, testing::Values(DType::f32, DType::f64),
                         [](const auto& tested) { return name_of(tested.param); });

TEST_P(Counts, CorrectAddsAndTakesTheFirstOfEqualLogits) {
  const Variable logits = constant({4, 3}, {1, 1, 0, 0, 1, 2, 5, 0, 0, 9, 0, 0});
  const Tensor sums = tensor_of<double>({10, 100});
  count_correct(logits, tensor_of<int32_t>({0, 2, 1, -1}), sums);
  EXPECT_EQ(values(sums), (std::vector<double>{12, 103})) << "the row of -1 is not counted";
}

TEST_P(Counts, CorrectAmongSeveral) {
  const double nan = std::nan("");
  const Variable logits = constant({5, 3}, {1, 2, 3, 1, 2, 3, 7, 7, 7, 0, nan, 1, nan, nan, nan});
  const Tensor labels = tensor_of<int32_t>({1, 0, 2, 2, 1});
  for (const auto& [most, correct] : {std::pair{1, 0.0}, {2, 2.0}, {3, 5.0}}) {
    const Tensor sums = tensor_of<double>({0, 0});
    count_correct(logits, labels, sums, most);
    EXPECT_EQ(values(sums), (std::vector<double>{correct, 5})) << most;
  }
}

TEST_P(Counts, CorrectByClass) {
  const Variable logits = constant({5, 3}, {1, 1, 0, 0, 1, 2, 5, 0, 0, 9, 0, 0, 3, 2, 1});
  const Tensor sums = tensor({3, 2}, {10, 20, 30, 40, 50, 60});
  count_correct_by_class(logits, tensor_of<int32_t>({0, 2, 1, -1, 0}), sums);
  EXPECT_EQ(values(sums), (std::vector<double>{12, 22, 30, 41, 51, 61}));
}

/// The classes are the blank, a, b and the space. The first sequence is heard as "a  ab b" and
/// labelled "a bb"; a run of spaces counts as one. The second is heard as "b" without a transcript.
TEST_P(Counts, EditsOfWordsAndLabels) {
  const std::vector<int> first{1, 1, 3, 0, 3, 0, 1, 2, 3, 2}, second{2, 0};
  const std::vector<int64_t> rows{2, 2, 1, 1, 1, 1, 1, 1, 1, 1};
  std::vector<double> logits;
  for (size_t t = 0; t < first.size(); ++t) {
    for (const std::vector<int>* path : {&first, &second})
      if (t < path->size())
        for (int c = 0; c < 4; ++c) logits.push_back(c == (*path)[t] ? 2.0 : c * 0.1);
  }
  const Tensor sums = tensor({3, 2}, {10, 20, 30, 40, 50, 60});
  count_edits(constant({12, 4}, logits), rows,
              tensor_of<int32_t>({1, 3, 2, 2, -1, -1, -1, -1, -1, -1}).reshape({2, 5}), 3, sums);
  // word edits: ab for bb, and b; label edits: an a, and a space between the bs; two blanks
  EXPECT_EQ(values(sums), (std::vector<double>{12, 22, 32, 44, 52, 70}));
}

TEST_P(Counts, AddMeanLeavesOutWhatIsNotFiniteInTraining) {
  const Tensor sums = tensor_of<double>({1, 2});
  add_mean(constant({1}, {0.5}), {.count = 10}, sums);
  add_mean(constant({1}, {std::nan("")}), {.count = 10}, sums);
  EXPECT_EQ(values(sums), (std::vector<double>{6, 12}));
  worker_.context.training = false;
  add_mean(constant({1}, {std::nan("")}), {.count = 10}, sums);
  EXPECT_TRUE(std::isnan(values(sums)[0]));
  EXPECT_EQ(values(sums)[1], 22);
}

TEST_P(Counts, AddMeanDividesByTheTargetsThatThereAre) {
  const Tensor sums = tensor_of<double>({0, 0});
  add_mean(constant({1}, {0.5}), {.count = 10, .ignored = 2}, sums);
  EXPECT_EQ(values(sums), (std::vector<double>{5, 8})) << "5 is the sum over 8";
}

}  // namespace
}  // namespace wisp
