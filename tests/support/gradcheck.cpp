#include "tests/support/gradcheck.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/leaves.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// Different for each element, so that errors do not cancel.
WISP_HD double weight_of(int64_t i) {
  return 0.5 + Philox(1, 0, 0).uniform(static_cast<uint64_t>(i));
}

struct WeightedSum {
  const double* x;
  int64_t numel;
  double* sum;
  WISP_HD void operator()() const {
    *sum = 0;
    for (int64_t i = 0; i < numel; ++i) *sum += weight_of(i) * x[i];
  }
};

struct WeightedSumGradient {
  const double* dy;
  double* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    dx[i] = (accumulate ? dx[i] : 0.0) + weight_of(i) * *dy;
  }
};

Variable weighted_sum(const Variable& x) {
  Context& context = x.context();
  const Tensor sum = context.empty({}, DType::f64);
  run_once(context.stream,
           WeightedSum{x.value().data<double>(), x.value().numel(), sum.data<double>()});
  return record("weighted_sum", sum, {x}, [&context](const Tensor& dy, Inputs& in) {
    const GradSlot dx = in.slot(0);
    parallel_for(context.stream, dx.into.numel(),
                 WeightedSumGradient{dy.data<double>(), dx.into.data<double>(), dx.accumulate});
  });
}

void prepare(Context& context, const GradientCase& gradient_case) {
  context.training = gradient_case.training;
  context.seed = 5;
  context.samples = sample_ids(gradient_case.inputs[0].shape()[0], 100);
}

double loss_of(const GradientCase& gradient_case) {
  TestContext worker;
  prepare(worker.context, gradient_case);
  std::vector<Variable> constants;
  for (const Tensor& input : gradient_case.inputs) constants.emplace_back(worker.context, input);
  return *weighted_sum(gradient_case.call(constants)).value().data<double>();
}

/// After `passes` backward passes, all but the first accumulating.
std::vector<Tensor> gradients_of(const GradientCase& gradient_case, int passes, bool late) {
  TestContext worker({.late = late});
  prepare(worker.context, gradient_case);
  Leaves leaves;
  std::vector<Variable> inputs;
  for (const Tensor& input : gradient_case.inputs)
    inputs.push_back(leaves.make(worker.context, input));
  for (int pass = 0; pass < passes; ++pass)
    backward(weighted_sum(gradient_case.call(inputs)), {.accumulate = pass > 0});
  worker.stream.synchronize();
  return leaves.gradients();
}

double central_difference(const GradientCase& gradient_case, double& element) {
  // truncation and rounding errors are both about 1e-10 here
  const double step = 1e-5;
  const double centre = element;
  element = centre + step;
  const double above = loss_of(gradient_case);
  element = centre - step;
  const double below = loss_of(gradient_case);
  element = centre;
  return (above - below) / (2 * step);
}

double largest(const std::vector<double>& numbers) {
  double result = 0;
  for (const double number : numbers) result = std::max(result, std::abs(number));
  return result;
}

/// Reports the first element that is off.
bool expect_close(const std::vector<double>& found, const std::vector<double>& expected,
                  double tolerance, const std::string& what) {
  const double bound = tolerance * largest(expected);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::abs(found[i] - expected[i]) <= bound) continue;
    ADD_FAILURE() << what << ", element " << i << ": found " << found[i] << ", expected "
                  << expected[i];
    return false;
  }
  return true;
}

}  // namespace

void expect_gradients(const GradientCase& gradient_case) {
  const std::vector<Tensor> once = gradients_of(gradient_case, 1, false);
  const std::vector<Tensor> twice = gradients_of(gradient_case, 2, false);
  const std::vector<Tensor> late = gradients_of(gradient_case, 1, true);
  for (size_t i = 0; i < once.size(); ++i) {
    const Tensor& input = gradient_case.inputs[i];
    const std::string name = "input " + std::to_string(i);
    std::vector<double> differences, doubled;
    for (int64_t j = 0; j < input.numel(); ++j)
      differences.push_back(central_difference(gradient_case, input.data<double>()[j]));
    for (const double gradient : values(once[i])) doubled.push_back(2 * gradient);
    if (!expect_close(values(once[i]), differences, 1e-6, name)) return;
    // adding in another order moves a few last bits
    expect_close(values(twice[i]), doubled, 1e-13, name + ", accumulated");
    EXPECT_EQ(values(late[i]), values(once[i])) << name << ", on a late stream";
  }
}

}  // namespace wisp
