#include "core/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <string>

#include "tests/support/error_of.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

using Variables = std::vector<Variable>;

GradientCase conv_case(const std::string& what, Shape x, Shape weight, ConvOptions options) {
  return {"conv2d",
          what,
          {random_tensor(x, 1), random_tensor(weight, 2)},
          [options](const Variables& in) { return conv2d(in[0], in[1], options); }};
}

BatchNormState norm_state(int64_t channels, DType dtype = DType::f64) {
  return {.running_mean = full({channels}, 0.25, dtype),
          .running_var = full({channels}, 2.0, dtype)};
}

/// Inputs x, gamma, beta and, if asked for, a residual.
GradientCase norm_case(const std::string& what, bool relu_on, bool residual, bool training,
                       DType statistics) {
  GradientCase result{
      "batch_norm",
      what,
      {random_tensor({2, 2, 3, 2}, 1), random_tensor({2}, 2), random_tensor({2}, 3)},
      {},
      training};
  if (residual) result.inputs.push_back(random_tensor({2, 2, 3, 2}, 4));
  // the state lives in the closure: a late stream uses it after the call
  result.call = [relu_on, residual,
                 state = norm_state(2, statistics)](const Variables& in) mutable {
    return batch_norm(in[0], in[1], in[2], state,
                      {.relu = relu_on, .residual = residual ? &in[3] : nullptr});
  };
  return result;
}

GradientCase entropy_case(const std::string& what, double smoothing) {
  return {"cross_entropy",
          what,
          {random_tensor({5, 4}, 1)},
          [smoothing, labels = tensor_of<int32_t>({3, 0, 1, 1, 2})](const Variables& in) {
            return cross_entropy(in[0], labels, smoothing);
          }};
}

template <class Call>
GradientCase unary_case(const std::string& function, const std::string& what, Shape x, Call call) {
  return {
      function, what, {random_tensor(x, 1)}, [call](const Variables& in) { return call(in[0]); }};
}

/// `statistics`: the type of running means and variances.
std::vector<GradientCase> gradient_cases(DType statistics = DType::f64) {
  const Shape image{2, 5, 6, 3};
  const Tensor x = random_tensor({4, 3}, 1);
  const Tensor weight = random_tensor({18, 3}, 2);  // more outputs than one group of bias columns
  return {
      conv_case("Plain", image, {4, 3, 3, 3}, {}),
      conv_case("StridePad", image, {4, 3, 3, 3}, {.stride = 2, .pad = 1}),
      conv_case("Dilation", image, {2, 2, 3, 3}, {.pad = 1, .dilation = 2}),
      conv_case("Groups", {2, 4, 4, 4}, {6, 3, 3, 2}, {.pad = 1, .groups = 2}),
      conv_case("OneByOne", image, {4, 1, 1, 3}, {.stride = 2}),
      norm_case("Plain", false, false, true, statistics),
      norm_case("Relu", true, false, true, statistics),
      norm_case("Residual", false, true, true, statistics),
      norm_case("ReluResidual", true, true, true, statistics),
      norm_case("Evaluation", false, false, false, statistics),
      norm_case("EvaluationReluResidual", true, true, false, statistics),
      {"batch_norm",
       "ItselfAsResidual",
       {random_tensor({5, 2}, 1), random_tensor({2}, 2), random_tensor({2}, 3)},
       [state = norm_state(2, statistics)](const Variables& in) mutable {
         return batch_norm(in[0], in[1], in[2], state, {.relu = true, .residual = &in[0]});
       }},
      unary_case("relu", "Plain", {3, 4}, [](const Variable& v) { return relu(v); }),
      {"add",
       "Plain",
       {x, random_tensor({4, 3}, 2)},
       [](const Variables& in) { return add(in[0], in[1]); }},
      {"add", "Itself", {x}, [](const Variables& in) { return add(in[0], in[0]); }},
      unary_case("max_pool2d", "Plain", image, [](const Variable& v) { return max_pool2d(v, 2); }),
      unary_case("max_pool2d", "OverlapPad", image,
                 [](const Variable& v) { return max_pool2d(v, 3, {.stride = 2, .pad = 1}); }),
      unary_case("avg_pool2d", "Plain", image, [](const Variable& v) { return avg_pool2d(v, 2); }),
      unary_case("avg_pool2d", "OverlapPad", image,
                 [](const Variable& v) { return avg_pool2d(v, 3, {.stride = 2, .pad = 1}); }),
      unary_case("global_avg_pool", "Plain", image,
                 [](const Variable& v) { return global_avg_pool(v); }),
      {"linear",
       "Bias",
       {x, weight, random_tensor({18}, 3)},
       [](const Variables& in) { return linear(in[0], in[1], in[2]); }},
      {"linear",
       "NoBias",
       {x, weight},
       [](const Variables& in) { return linear(in[0], in[1], {}); }},
      unary_case("reshape", "Plain", image,
                 [](const Variable& v) {
                   return reshape(v, {5, 4, 9});
                 }),
      unary_case("widen", "Plain", image, [](const Variable& v) { return widen(v); }),
      unary_case("pad_channels", "Plain", image,
                 [](const Variable& v) { return pad_channels(v, 6, 2); }),
      unary_case("pad_channels", "StrideOnly", image,
                 [](const Variable& v) { return pad_channels(v, 3, 3); }),
      unary_case("dropout", "Half", {3, 7}, [](const Variable& v) { return dropout(v, 0.5, 1); }),
      unary_case("dropout", "ZeroProbability", {3, 7},
                 [](const Variable& v) { return dropout(v, 0.0, 1); }),
      entropy_case("Plain", 0.0),
      entropy_case("Smoothing", 0.1),
  };
}

class OpsGradient : public testing::TestWithParam<GradientCase> {};

TEST_P(OpsGradient, EqualsCentralDifferences) { expect_gradients(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Ops, OpsGradient, testing::ValuesIn(gradient_cases()),
                         [](const auto& tested) {
                           return tested.param.function + "_" + tested.param.what;
                         });

/// Whether an input of the function is f32 beside bf16 activations.
bool is_parameter(const std::string& function, size_t input) {
  if (function == "cross_entropy") return true;
  if (function == "batch_norm") return input == 1 || input == 2;
  return input > 0 && (function == "conv2d" || function == "linear");
}

/// The same numbers, rounded to bf16, in f64 and as bf16 compute has them.
class OpsBf16 : public testing::TestWithParam<size_t> {
 protected:
  static void expect_agreement(size_t index, bool fastest) {
    GradientCase exact = gradient_cases()[index];
    GradientCase rounded = gradient_cases(DType::f32)[index];
    for (size_t i = 0; i < exact.inputs.size(); ++i) {
      const Shape shape = exact.inputs[i].shape();
      const Tensor coarse = tensor(shape, values(exact.inputs[i]), DType::bf16);
      exact.inputs[i] = tensor(shape, values(coarse));
      rounded.inputs[i] =
          is_parameter(exact.function, i) ? tensor(shape, values(coarse), DType::f32) : coarse;
    }
    expect_bf16_agrees(rounded, exact, fastest);
  }
};

TEST_P(OpsBf16, AgreesWithF64OnTheReference) { expect_agreement(GetParam(), false); }

TEST_P(OpsBf16, AgreesWithF64OnTheFastestBackend) {
  if (!missing_for(DType::bf16).empty()) GTEST_SKIP() << "needs " << missing_for(DType::bf16);
  expect_agreement(GetParam(), true);
}

INSTANTIATE_TEST_SUITE_P(Ops, OpsBf16, testing::Range<size_t>(0, gradient_cases().size()),
                         [](const auto& tested) {
                           const GradientCase gradient_case = gradient_cases()[tested.param];
                           return gradient_case.function + "_" + gradient_case.what;
                         });

/// Functions declared in core/ops.h: a line that starts with a result type.
std::set<std::string> declared_functions() {
  std::ifstream header(WISP_OPS_HEADER);
  std::set<std::string> names;
  for (std::string line; std::getline(header, line);) {
    for (const std::string result : {"Variable ", "void "}) {
      if (line.rfind(result, 0) == 0)
        names.insert(line.substr(result.size(), line.find('(') - result.size()));
    }
  }
  return names;
}

TEST(Ops, EveryDeclaredFunctionHasAGradientCase) {
  std::set<std::string> checked{"count_correct"};  // has no gradient
  for (const GradientCase& gradient_case : gradient_cases()) checked.insert(gradient_case.function);
  EXPECT_EQ(declared_functions(), checked);
}

/// Values by hand, in both types.
class OpsValue : public testing::TestWithParam<DType> {
 protected:
  Variable constant(Shape shape, const std::vector<double>& numbers) {
    return {worker_.context, tensor(shape, numbers, GetParam())};
  }
  static void expect_values(const Variable& y, Shape shape, const std::vector<double>& expected) {
    ASSERT_EQ(y.shape(), shape);
    const std::vector<double> found = values(y.value());
    // the expected numbers are exact or rounded to 7 digits
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
  }

  TestContext worker_{{.compute = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Types, OpsValue, testing::Values(DType::f32, DType::f64),
                         [](const auto& tested) { return name_of(tested.param); });

TEST_P(OpsValue, Conv2d) {
  const Variable x = constant({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const Variable weight = constant({1, 2, 2, 1}, {1, 10, 100, 1000});
  expect_values(conv2d(x, weight), {1, 1, 2, 1}, {5421, 6532});
  expect_values(conv2d(x, weight, {.stride = 2, .pad = 1}), {1, 2, 2, 1}, {1000, 3200, 40, 65});
}

TEST_P(OpsValue, BatchNormTrainsOnTheBatch) {
  const Variable x = constant({2, 1}, {1, 3});
  BatchNormState state{.running_mean = full({1}, 1.0, GetParam()),
                       .running_var = full({1}, 1.0, GetParam()),
                       .epsilon = 0.0};
  const Variable gamma = constant({1}, {2});
  const Variable beta = constant({1}, {0.5});
  const Variable residual = constant({2, 1}, {1, 1});
  expect_values(batch_norm(x, gamma, beta, state), {2, 1}, {-1.5, 2.5});
  // mean 2 and unbiased variance 2, with weight 0.1
  EXPECT_NEAR(values(state.running_mean)[0], 1.1, 1e-6);
  EXPECT_NEAR(values(state.running_var)[0], 1.1, 1e-6);
  expect_values(batch_norm(x, gamma, beta, state, {.relu = true, .residual = &residual}), {2, 1},
                {0, 3.5});
}

TEST_P(OpsValue, BatchNormEvaluatesWithRunningStatistics) {
  worker_.context.training = false;
  BatchNormState state{.running_mean = full({1}, 1.0, GetParam()),
                       .running_var = full({1}, 4.0, GetParam()),
                       .epsilon = 0.0};
  const Variable y =
      batch_norm(constant({2, 1}, {1, 3}), constant({1}, {2}), constant({1}, {0.5}), state);
  expect_values(y, {2, 1}, {0.5, 2.5});
  EXPECT_EQ(values(state.running_mean)[0], 1.0);
  EXPECT_EQ(values(state.running_var)[0], 4.0);
}

TEST_P(OpsValue, ElementwiseOps) {
  const Variable a = constant({3}, {-1, 0, 2});
  expect_values(relu(a), {3}, {0, 0, 2});
  expect_values(add(a, constant({3}, {10, 20, 30})), {3}, {9, 20, 32});
  expect_values(reshape(a, {1, 3}), {1, 3}, {-1, 0, 2});
}

TEST_P(OpsValue, ReluKeepsNaN) {
  EXPECT_TRUE(std::isnan(values(relu(constant({1}, {NAN})).value())[0]));
}

TEST_P(OpsValue, Pools) {
  const Variable x = constant({1, 3, 3, 1}, {-1, -2, -3, -4, -5, -6, -7, -8, -9});
  expect_values(max_pool2d(x, 2, {.stride = 1}), {1, 2, 2, 1}, {-1, -2, -4, -5});
  expect_values(max_pool2d(x, 2, {.pad = 1}), {1, 2, 2, 1}, {-1, -2, -4, -5});
  expect_values(avg_pool2d(x, 2, {.pad = 1}), {1, 2, 2, 1}, {-0.25, -1.25, -2.75, -7});
  expect_values(global_avg_pool(x), {1, 1}, {-5});
}

TEST_P(OpsValue, Linear) {
  const Variable x = constant({2, 2}, {1, 2, 3, 4});
  const Variable weight = constant({3, 2}, {1, 0, 0, 1, 1, 1});
  expect_values(linear(x, weight, {}), {2, 3}, {1, 2, 3, 3, 4, 7});
  expect_values(linear(x, weight, constant({3}, {10, 20, 30})), {2, 3}, {11, 22, 33, 13, 24, 37});
}

TEST(Ops, WidenLeavesF32AndF64AsTheyAre) {
  TestContext worker;
  const Variable x(worker.context, tensor({1}, {1.0}));
  EXPECT_EQ(widen(x).node(), x.node());
  const Variable rounded(worker.context, tensor({2}, {1.5, -3.0}, DType::bf16));
  EXPECT_EQ(widen(rounded).value().dtype(), DType::f32);
  EXPECT_EQ(values(widen(rounded).value()), std::vector<double>({1.5, -3.0}));
}

TEST(Ops, ProductsInBf16RoundTheirWeightsAndAddInF32) {
  TestContext worker({.compute = DType::bf16});
  const auto constant = [&](Shape shape, const std::vector<double>& numbers, DType dtype) {
    return Variable(worker.context, tensor(shape, numbers, dtype));
  };
  // 1 + 2^-8 is half way between two bf16, and rounds to 1; 256 + 1 + 1 = 258 is a bf16, 256 + 1
  // is not
  const Variable x = constant({1, 3}, {256, 1, 1}, DType::bf16);
  const Variable weight = constant({1, 3}, {1 + 0x1p-8, 1, 1}, DType::f32);
  const Variable y = linear(x, weight, {});
  EXPECT_EQ(y.value().dtype(), DType::bf16);
  EXPECT_EQ(values(y.value())[0], 258);
}

TEST_P(OpsValue, PadChannels) {
  const Variable x = constant({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6});
  expect_values(pad_channels(x, 4, 2), {1, 1, 2, 4}, {0, 1, 2, 0, 0, 5, 6, 0});
}

TEST_P(OpsValue, CrossEntropy) {
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

TEST_P(OpsValue, CrossEntropyOfALabelOutOfRangeIsNaN) {
  const Variable logits = constant({2, 2}, {0, 1, 2, 3});
  for (const int32_t label : {-1, 2}) {
    const Variable loss = cross_entropy(logits, tensor_of<int32_t>({0, label}));
    EXPECT_TRUE(std::isnan(values(loss.value())[0])) << label;
  }
}

TEST_P(OpsValue, CountCorrectAddsAndTakesTheFirstOfEqualLogits) {
  const Variable logits = constant({3, 3}, {1, 1, 0, 0, 1, 2, 5, 0, 0});
  Tensor counts = tensor_of<int64_t>({10, 100});
  count_correct(logits, tensor_of<int32_t>({0, 2, 1}), counts);
  EXPECT_EQ(counts.data<int64_t>()[0], 12);
  EXPECT_EQ(counts.data<int64_t>()[1], 103);
}

TEST_P(OpsValue, DropoutScalesWhatItKeeps) {
  const int64_t rows = 40;
  const int64_t features = 99;
  worker_.context.samples = sample_ids(rows);
  const Variable ones(worker_.context, full({rows, features}, 1.0, GetParam()));
  int kept = 0;
  for (const double y : values(dropout(ones, 0.25, 0).value())) {
    if (y == 0.0) continue;
    EXPECT_NEAR(y, 4.0 / 3.0, 1e-6);
    ++kept;
  }
  // binomial: mean 2970, standard deviation 27
  EXPECT_NEAR(kept, 2970, 4 * 27);
  worker_.context.training = false;
  EXPECT_EQ(dropout(ones, 0.25, 0).node(), ones.node());
}

TEST(Ops, DropoutFollowsTheSampleNotItsRow) {
  TestContext worker;
  const auto mask = [&](const Tensor& samples, uint64_t layer, int64_t step) {
    worker.context.samples = samples;
    worker.context.step = step;
    const Variable ones(worker.context, full({samples.numel(), 50}, 1.0));
    return dropout(ones, 0.5, layer).value();
  };
  const Tensor both = mask(sample_ids(2, 7), 0, 3);
  const Tensor second = mask(sample_ids(1, 8), 0, 3);
  EXPECT_EQ(values(both.rows(1, 2)), values(second));
  EXPECT_NE(values(both.rows(0, 1)), values(second));
  EXPECT_NE(values(mask(sample_ids(1, 8), 1, 3)), values(second)) << "another layer";
  EXPECT_NE(values(mask(sample_ids(1, 8), 0, 4)), values(second)) << "another step";
}

TEST(Ops, RefuseShapesThatDoNotFit) {
  TestContext worker;
  const auto zeros = [&](Shape shape) {
    return Variable(worker.context, Tensor(shape, DType::f64));
  };
  const Variable image = zeros({1, 4, 4, 3});
  const auto error = [](auto call) { return error_of(call); };

  EXPECT_EQ(error([&] {
              conv2d(image, zeros({8, 3, 3, 4}));
            }),
            "conv2d: input has 3 channels, weight expects 4 x 1 groups");
  EXPECT_NE(error([&] {
              conv2d(image, zeros({8, 5, 5, 3}));
            }).find("does not fit"),
            std::string::npos);
  EXPECT_NE(error([&] { add(image, zeros({3})); }).find("(1, 4, 4, 3)"), std::string::npos);
  EXPECT_NE(error([&] {
              linear(zeros({2, 3}), zeros({4, 5}), {});
            }).find("(4, 5)"),
            std::string::npos);
  EXPECT_NE(error([&] { reshape(image, {7}); }).find("48"), std::string::npos);
  EXPECT_NE(error([&] { max_pool2d(image, 2, {.pad = 2}); }).find("pad 2"), std::string::npos);
  EXPECT_NE(error([&] { pad_channels(image, 2, 1); }).find("2 channels"), std::string::npos);
  EXPECT_NE(error([&] { dropout(image, 1.0, 0); }).find("[0, 1)"), std::string::npos);
  EXPECT_NE(error([&] { dropout(image, 0.5, 0); }).find("0 sample ids"), std::string::npos);
  EXPECT_NE(error([&] {
              cross_entropy(zeros({2, 3}), tensor_of<int32_t>({1}));
            }).find("(2) i32"),
            std::string::npos);
  EXPECT_NE(error([&] {
              const Variable logits(worker.context, Tensor({1, 3}, DType::bf16));
              cross_entropy(logits, tensor_of<int32_t>({1}));
            }).find("widen()"),
            std::string::npos);
  BatchNormState state = norm_state(2);
  EXPECT_NE(error([&] { batch_norm(image, zeros({2}), zeros({2}), state); }).find("expected (3)"),
            std::string::npos);
  state = norm_state(3);
  EXPECT_NE(error([&] {
              batch_norm(zeros({1, 3}), zeros({3}), zeros({3}), state);
            }).find("at least 2"),
            std::string::npos);
}

}  // namespace
}  // namespace wisp
