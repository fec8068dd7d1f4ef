#include "core/parameter.h"

#include <gtest/gtest.h>

#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// Two parameters, the second one frozen, in the arenas of a context.
struct Rig {
  explicit Rig(TestContextOptions options)
      : worker(options), parameters(worker.context, {&trained, &frozen}, {}) {}

  Tensor factor(const Parameter& parameter, DType type) const {
    return parameter.variable.factor(type);
  }

  TestContext worker;  // first member: outlives the tensors in its pool
  Parameter trained{.name = "trained", .shape = {2, 3}, .init = {Init::Kind::normal, 1.0}};
  Parameter frozen{
      .name = "frozen", .shape = {5}, .init = {Init::Kind::normal, 1.0}, .frozen = true};
  FlatParameters parameters;
};

std::vector<double> rounded(const Tensor& x) {
  std::vector<double> numbers = values(x);
  for (double& number : numbers)
    number = static_cast<double>(wide(BFloat16(static_cast<float>(number))));
  return numbers;
}

TEST(FlatParameters, KeepRoundedWeightsThatFollowTheWeights) {
  Rig rig({.compute = DType::bf16, .library = Library::kernels});
  EXPECT_EQ(rig.factor(rig.trained, DType::bf16).dtype(), DType::f32);  // before the first request
  for (const double value : {0.1, 0.3}) {
    for (const Parameter* parameter : {&rig.trained, &rig.frozen}) {
      parameter->variable.value().data<float>()[1] = static_cast<float>(value);
      rig.parameters.round_weights();
      const Tensor factor = rig.factor(*parameter, DType::bf16);
      EXPECT_EQ(factor.dtype(), DType::bf16);
      EXPECT_EQ(factor.shape(), parameter->shape);
      EXPECT_EQ(values(factor), rounded(parameter->variable.value()));
      EXPECT_NE(values(factor), values(parameter->variable.value()));
      EXPECT_EQ(rig.factor(*parameter, DType::f32).raw(), parameter->variable.value().raw());
    }
  }
}

TEST(FlatParameters, KeepNoRoundedWeightsThatNobodyReads) {
  for (const TestContextOptions& options :
       {TestContextOptions{.compute = DType::f32, .library = Library::kernels},
        TestContextOptions{.compute = DType::bf16, .library = Library::reference}}) {
    Rig rig(options);
    const int64_t before = rig.worker.pool.stats().used_bytes;
    rig.parameters.round_weights();
    EXPECT_EQ(rig.worker.pool.stats().used_bytes, before);
    EXPECT_EQ(rig.factor(rig.trained, options.compute).raw(), rig.trained.variable.value().raw());
  }
}

}  // namespace
}  // namespace wisp
