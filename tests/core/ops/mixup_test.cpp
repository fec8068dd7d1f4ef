// Tests of mixup: the drawn shares, mixed rows, and cross entropy with two labels a row.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops.h"
#include "tests/support/error_of.h"
#include "tests/support/leaves.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

class Mixup : public testing::Test {
 protected:
  Mixup() { worker_.context.seed = 5; }
  /// The shares of rows with the labels 0, and keys from `first` on.
  std::vector<double> shares(int64_t rows, double alpha, int64_t first = 0) {
    worker_.context.samples = sample_ids(rows, first);
    return values(mixup_shares(worker_.context, worker_.context.zeros({rows}, DType::i32), alpha));
  }
  double loss(const Tensor& logits, const std::vector<int32_t>& labels, double smoothing = 0.0,
              const Tensor& shares = {}) {
    return values(
        cross_entropy(Variable(worker_.context, logits), tensor_of(labels), smoothing, shares)
            .value())[0];
  }

  TestContext worker_;
};

/// E[λ²] of Beta(a, a) is (a + 1) / (2 (2a + 1)), and so is E[(1 - λ)²].
TEST_F(Mixup, SharesAreOfABetaDistribution) {
  for (const double alpha : {0.1, 0.4, 1.0}) {
    double squares = 0.0, fourths = 0.0;
    const std::vector<double> drawn = shares(200'000, alpha);
    for (const double share : drawn) {
      ASSERT_GE(share, 0.5);
      ASSERT_LE(share, 1.0);
      squares += share * share + (1 - share) * (1 - share);
      fourths += std::pow(share, 4) + std::pow(1 - share, 4);
    }
    const auto count = static_cast<double>(drawn.size());
    const double square = (alpha + 1) / (2 * (2 * alpha + 1));
    const double fourth = square * (alpha + 2) * (alpha + 3) / ((2 * alpha + 2) * (2 * alpha + 3));
    EXPECT_NEAR(squares / count, 2 * square, 0.004) << alpha;
    EXPECT_NEAR(fourths / count, 2 * fourth, 0.004) << alpha;
  }
}

TEST_F(Mixup, SharesDependOnSeedStepAndKey) {
  const std::vector<double> first = shares(8, 0.4);
  EXPECT_EQ(shares(8, 0.4), first);
  const std::vector<double> half = shares(4, 0.4, 4);
  EXPECT_EQ(half, std::vector<double>(first.begin() + 4, first.end())) << "another worker";
  for (size_t i = 0; i < 8; i += 2) EXPECT_EQ(first[i], first[i + 1]);
  EXPECT_NE(first[0], first[2]);
  worker_.context.step = 1;
  EXPECT_NE(shares(8, 0.4), first);
  worker_.context.step = 0;
  worker_.context.seed = 6;
  EXPECT_NE(shares(8, 0.4), first);
}

TEST_F(Mixup, LeavesDamagedAndSingleRowsAlone) {
  worker_.context.samples = sample_ids(7);
  const Tensor labels = tensor_of<int32_t>({0, -1, -1, 2, 1, 1, 3});
  const std::vector<double> shares = values(mixup_shares(worker_.context, labels, 1.0));
  EXPECT_EQ(std::vector<double>(shares.begin(), shares.begin() + 4), std::vector<double>(4, 1.0));
  EXPECT_LT(shares[4], 1.0);
  EXPECT_EQ(shares[6], 1.0);
}

TEST_F(Mixup, MixesNeighbours) {
  const Tensor x = tensor({5, 2}, {1, 2, 5, 10, -4, 0, 0, 8, 3, 7}, DType::f32);
  const Tensor shares = tensor({5}, {0.75, 0.75, 0.5, 0.5, 1}, DType::f32);
  EXPECT_EQ(values(mix_neighbours(worker_.context, x, shares)),
            (std::vector<double>{2, 4, 4, 8, -2, 4, -2, 4, 3, 7}));
}

/// The loss is linear in the target.
TEST_F(Mixup, LossIsTheMeanOfBothLabelsLosses) {
  const Tensor logits = random_tensor({4, 6}, 1),
               shares = tensor({4}, {0.75, 0.75, 1, 1}, DType::f32);
  for (const double smoothing : {0.0, 0.1}) {
    const double expected = (0.75 * loss(logits, {2, 5, -1, -1}, smoothing) +
                             0.25 * loss(logits, {5, 2, -1, -1}, smoothing)) +
                            loss(logits, {-1, -1, 3, -1}, smoothing);
    EXPECT_NEAR(loss(logits, {2, 5, 3, -1}, smoothing, shares), expected, 1e-12);
  }
  EXPECT_TRUE(std::isnan(loss(logits, {2, 6, 3, -1}, 0.0, shares))) << "a label out of range";
}

/// Numbers of PyTorch 2.15's cross_entropy in f64, with a distribution for each row in place of a
/// label.
TEST_F(Mixup, CrossEntropyIsPyTorchs) {
  const Tensor x = tensor(
      {3, 5}, {0.5, -1.25, 2.0, 0.0, 3.5, -2.0, 4.0, 0.25, 1.0, -0.5, 1.0, 1.0, -3.0, 2.5, 0.75});
  const std::vector<double> expected = {-0.069015260, -0.004468182, -0.174966994, 0.001006800,
                                        0.247443636,  -0.230906471, 0.300018046,  -0.074454134,
                                        0.008602266,  -0.003259707, 0.039128393,  0.039128393,
                                        -0.005827901, -0.101427447, 0.028998562};
  Leaves leaves;
  const Variable loss =
      cross_entropy(leaves.make(worker_.context, x), tensor_of<int32_t>({2, 0, 3}), 0.1,
                    tensor({3}, {0.75, 0.75, 1}, DType::f32));
  EXPECT_NEAR(values(loss.value())[0], 2.7419713627430653, 1e-12);
  backward(loss);
  const std::vector<double> gradient = values(leaves.gradients()[0]);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(gradient[i], expected[i], 1e-9) << i;
}

TEST_F(Mixup, RefusesWhatItCannotMix) {
  worker_.context.samples = sample_ids(2);
  const Tensor labels = tensor_of<int32_t>({0, 1});
  for (const double alpha : {0.0, 1.5, std::nan("")}) {
    const std::string error = error_of([&] { mixup_shares(worker_.context, labels, alpha); });
    EXPECT_NE(error.find("expected more than 0 and at most 1"), error.npos) << error;
  }
  EXPECT_EQ(error_of([&] { mixup_shares(worker_.context, tensor_of<int32_t>({0}), 0.2); }),
            "mixup: 2 keys for 1 rows, expected an i64 for each");
  EXPECT_EQ(error_of([&] {
              mix_neighbours(worker_.context, random_tensor({3, 2}, 1), full({2}, 1, DType::f32));
            }),
            "mix_neighbours: shares are (2) f32, expected (3) f32");
  EXPECT_EQ(error_of([&] {
              loss(random_tensor({2, 2}, 1), {0, 1}, 0.0, full({2}, 1, DType::f64));
            }),
            "cross_entropy: shares are (2) f64, expected (2) f32");
}

}  // namespace
}  // namespace wisp
