// Tests of cross_entropy().
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "core/ops.h"
#include "tests/support/leaves.h"
#include "tests/support/ops_value.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

class CrossEntropy : public OpsValue {};

INSTANTIATE_TEST_SUITE_P(Types, CrossEntropy, testing::Values(DType::f32, DType::f64),
                         [](const auto& tested) { return name_of(tested.param); });

TEST_P(CrossEntropy, OfRowsByHand) {
  // softmax (1/4, 3/4): -log(1/4) and -log(3/4)
  const Variable logits = constant({2, 2}, {0, std::log(3), 1000, 1000 + std::log(3)});
  const Tensor labels = tensor_of<int32_t>({0, 1});
  // 1000 + log 3 in f32 is off by up to 3.1e-5
  const double tolerance = GetParam() == DType::f32 ? 4e-5 : 1e-12;
  const double on_first = std::log(4.0);
  const double on_second = std::log(4.0 / 3.0);
  EXPECT_NEAR(values(cross_entropy(logits, labels).value())[0], (on_first + on_second) / 2,
              tolerance);
  EXPECT_NEAR(values(cross_entropy(logits, tensor_of<int32_t>({0, 0}), 0.2).value())[0],
              0.9 * on_first + 0.1 * on_second, tolerance);
}

TEST_P(CrossEntropy, OfALabelOutOfRangeIsNaN) {
  const Variable logits = constant({2, 2}, {0, 1, 2, 3});
  for (const int32_t label : {-2, 2}) {
    const Variable loss = cross_entropy(logits, tensor_of<int32_t>({0, label}));
    EXPECT_TRUE(std::isnan(values(loss.value())[0])) << label;
  }
}

TEST_P(CrossEntropy, IgnoresMinusOneAndStillDividesByAllRows) {
  const Variable logits = constant({3, 2}, {0, std::log(3), 7, 8, 1, 1});
  const double tolerance = GetParam() == DType::f32 ? 1e-6 : 1e-12;
  const Variable loss = cross_entropy(logits, tensor_of<int32_t>({0, -1, 1}));
  EXPECT_NEAR(values(loss.value())[0], (std::log(4.0) + std::log(2.0)) / 3, tolerance);
}

TEST_P(CrossEntropy, OfAnImpossibleClass) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Variable logits = constant({1, 3}, {0, -infinity, std::log(3)});
  EXPECT_NEAR(values(cross_entropy(logits, tensor_of<int32_t>({2})).value())[0],
              std::log(4.0 / 3.0), 1e-6);
}

/// Numbers of PyTorch 2.15's cross_entropy in f64.
TEST_P(CrossEntropy, IsPyTorchs) {
  const Tensor x = tensor(
      {3, 5}, {0.5, -1.25, 2.0, 0.0, 3.5, -2.0, 4.0, 0.25, 1.0, -0.5, 1.0, 1.0, -3.0, 2.5, 0.75},
      GetParam());
  const Tensor labels = tensor_of<int32_t>({2, 0, 3});
  const struct {
    double smoothing, loss;
    std::vector<double> gradient;
  } cases[] = {{0.0,
                2.7798880294097317,
                {0.012651407, 0.002198485, -0.276633661, 0.007673466, 0.254110303, -0.332573138,
                 0.306684713, 0.007212533, 0.015268933, 0.003406959, 0.045795060, 0.045795060,
                 0.000838766, -0.128094114, 0.035665228}},
               {0.1,
                2.798221362743065,
                {0.005984740, -0.004468182, -0.249966994, 0.001006800, 0.247443636, -0.305906471,
                 0.300018046, 0.000545866, 0.008602266, -0.003259707, 0.039128393, 0.039128393,
                 -0.005827901, -0.101427447, 0.028998562}}};
  for (const auto& expected : cases) {
    Leaves leaves;
    const Variable loss =
        cross_entropy(leaves.make(worker_.context, x), labels, expected.smoothing);
    expect_values(loss, {}, {expected.loss});
    backward(loss);
    const std::vector<double> gradient = values(leaves.gradients()[0]);
    for (size_t i = 0; i < gradient.size(); ++i)
      EXPECT_NEAR(gradient[i], expected.gradient[i], 1e-7) << i;  // f32, and 9 printed digits
  }
}

/// Numbers of classes that fill the lanes or do not, and a single class.
TEST_P(CrossEntropy, IsTheSumOfItsRowsForAnyThreads) {
  const int before = omp_get_max_threads();
  for (const int64_t classes : {1, 15, 16, 1003}) {
    const int64_t rows = 70;
    const Tensor x = random_tensor({rows, classes}, 3, GetParam());
    Tensor labels({rows}, DType::i32);
    for (int64_t i = 0; i < rows; ++i)
      labels.data<int32_t>()[i] = static_cast<int32_t>(7 * i % classes);
    const std::vector<double> logit = values(x);
    double expected = 0.0;
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0.0;
      for (int64_t c = 0; c < classes; ++c)
        sum += std::exp(logit[static_cast<size_t>(i * classes + c)]);
      const int64_t at = i * classes + labels.data<int32_t>()[i];
      expected += std::log(sum) - logit[static_cast<size_t>(at)];
    }
    std::vector<double> first;
    for (const int threads : {1, 2, 3}) {
      omp_set_num_threads(threads);
      Leaves leaves;
      const Variable loss = cross_entropy(leaves.make(worker_.context, x), labels);
      backward(loss);
      std::vector<double> found = values(leaves.gradients()[0]);
      found.push_back(values(loss.value())[0]);
      if (first.empty()) first = found;
      EXPECT_EQ(found, first) << threads << " threads";
    }
    EXPECT_NEAR(first.back(), expected / static_cast<double>(rows), 1e-6 * (1 + expected))
        << classes;
  }
  omp_set_num_threads(before);
}

TEST(CrossEntropyMemory, WritesItsGradientOverTheLogits) {
  const int64_t rows = 64, classes = 1000;
  const Tensor labels({rows}, DType::i32);
  Leaves leaves;
  const auto peak_of = [&](bool keep) {
    TestContext worker;
    const Variable x(worker.context, random_tensor({rows, 2}, 1));
    Variable logits = linear(x, leaves.make(worker.context, random_tensor({classes, 2}, 2)), {});
    const Variable loss = cross_entropy(logits, labels);
    if (!keep) logits = {};
    backward(loss);
    return worker.pool.stats().peak_used_bytes;
  };
  const int64_t bytes = rows * classes * 8;
  EXPECT_LT(peak_of(false), bytes + bytes / 4);
  EXPECT_GE(peak_of(true), 2 * bytes);
  EXPECT_EQ(values(leaves.gradients()[0]), values(leaves.gradients()[1]));
}

}  // namespace
}  // namespace wisp
