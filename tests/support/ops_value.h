// A fixture for tests of ops with values by hand, in f32 and f64.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "core/autograd.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {

/// Its parameter is the type of the values.
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

}  // namespace wisp
