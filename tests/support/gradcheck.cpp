#include "tests/support/gradcheck.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/loops/parallel.h"
#include "core/random.h"
#include "tests/support/leaves.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// Weights that differ per element, so that errors do not cancel.
WISP_HD double weight_of(int64_t i) {
  return 0.5 + Philox(1, 0, 0).uniform(static_cast<uint64_t>(i));
}

template <class T>
struct WeightedSum {
  const T* x;
  int64_t numel;
  double* sum;
  WISP_HD void operator()() const {
    *sum = 0;
    for (int64_t i = 0; i < numel; ++i) *sum += weight_of(i) * static_cast<double>(wide(x[i]));
  }
};

template <class T>
struct WeightedSumGradient {
  const double* dy;
  T* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    const auto share = static_cast<Wide<T>>(weight_of(i) * *dy);
    store(dx + i, (accumulate ? wide(dx[i]) : 0) + share);
  }
};

Variable weighted_sum(const Variable& x) {
  Context& context = x.context();
  const Tensor sum = context.empty({}, DType::f64);
  dispatch_activation(x.value().dtype(), "weighted_sum", [&](auto zero) {
    using T = decltype(zero);
    run_once(context.stream,
             WeightedSum<T>{x.value().data<T>(), x.value().numel(), sum.data<double>()});
  });
  return record("weighted_sum", sum, {x}, [&context](const Tensor& dy, Inputs& in) {
    const GradSlot dx = in.slot(0);
    dispatch_activation(dx.into.dtype(), "weighted_sum", [&](auto zero) {
      using T = decltype(zero);
      parallel_for(context.stream, dx.into.numel(),
                   WeightedSumGradient<T>{dy.data<double>(), dx.into.data<T>(), dx.accumulate});
    });
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

struct Outcome {
  Tensor value;
  std::vector<Tensor> gradients;
};

/// The value and gradients after `passes` backward passes, all but the first accumulating.
Outcome outcome_of(const GradientCase& gradient_case, int passes, TestContextOptions options) {
  TestContext worker(options);
  prepare(worker.context, gradient_case);
  Leaves leaves;
  std::vector<Variable> inputs;
  for (const Tensor& input : gradient_case.inputs)
    inputs.push_back(leaves.make(worker.context, input));
  Tensor value;
  for (int pass = 0; pass < passes; ++pass) {
    const Variable result = gradient_case.call(inputs);
    backward(weighted_sum(result), {.accumulate = pass > 0});
    worker.stream.synchronize();
    value = tensor(result.shape(),
                   values(result.value()));  // copied, because the pool's memory goes away
  }
  return {value, leaves.gradients()};
}

double central_difference(const GradientCase& gradient_case, double& element) {
  // the truncation and rounding errors are both about 1e-10 here
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

/// Reports the first element outside the tolerance.
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

void expect_small_error(const Tensor& found, const Tensor& expected, const std::string& what) {
  const std::vector<double> a = values(found), b = values(expected);
  double error = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  // bf16 rounds at 4e-3 relative, on average 3e-6 squared, a few times per op
  EXPECT_LE(error, 1e-4 * norm) << what;
}

}  // namespace

void expect_gradients(const GradientCase& gradient_case) {
  const Outcome first = outcome_of(gradient_case, 1, {});
  const std::vector<Tensor>& once = first.gradients;
  const std::vector<Tensor> twice = outcome_of(gradient_case, 2, {}).gradients;
  const std::vector<Tensor> late = outcome_of(gradient_case, 1, {.late = true}).gradients;
  const Outcome by_kernels = outcome_of(gradient_case, 2, {.library = Library::kernels});
  const std::vector<Tensor>& kernels = by_kernels.gradients;
  expect_close(values(by_kernels.value), values(first.value), 1e-12, "value, by our kernels");
  for (size_t i = 0; i < once.size(); ++i) {
    const Tensor& input = gradient_case.inputs[i];
    const std::string name = "input " + std::to_string(i);
    std::vector<double> differences, doubled;
    for (int64_t j = 0; j < input.numel(); ++j)
      differences.push_back(central_difference(gradient_case, input.data<double>()[j]));
    for (const double gradient : values(once[i])) doubled.push_back(2 * gradient);
    if (!expect_close(values(once[i]), differences, 1e-6, name)) return;
    // additions in another order change a few last bits
    expect_close(values(twice[i]), doubled, 1e-13, name + ", accumulated");
    EXPECT_EQ(values(late[i]), values(once[i])) << name << ", on a late stream";
    expect_close(values(kernels[i]), values(twice[i]), 1e-12, name + ", by our kernels");
  }
}

void expect_bf16_agrees(const GradientCase& rounded, const GradientCase& exact, bool fastest) {
  const TestContextOptions options{.compute = DType::bf16,
                                   .library = fastest ? Library::fastest : Library::reference};
  for (const int passes : {1, 2}) {
    SCOPED_TRACE(passes == 1 ? "written" : "accumulated");
    const Outcome found = outcome_of(rounded, passes, options);
    const Outcome expected = outcome_of(exact, passes, {});
    expect_small_error(found.value, expected.value, "value");
    for (size_t i = 0; i < expected.gradients.size(); ++i)
      expect_small_error(found.gradients[i], expected.gradients[i], "input " + std::to_string(i));
  }
}

}  // namespace wisp
