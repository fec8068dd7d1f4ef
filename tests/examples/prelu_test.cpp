#include "examples/prelu.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp::examples {
namespace {

TEST(PRelu, HasTheGradientsOfCentralDifferences) {
  expect_gradients({"prelu",
                    "",
                    {random_tensor({3, 2, 2, 2}, 1), tensor({1}, {0.25})},
                    [](const std::vector<Variable>& in) { return prelu(in[0], in[1]); }});
}

TEST(PRelu, StartsWithAQuarterOfTheNegativeSide) {
  TestContext worker;
  PRelu layer;
  FlatParameters parameters(worker.context, layer.parameters(), layer.buffers());
  const Variable x(worker.context, tensor({4}, {-8, -1, 0, 3}));
  EXPECT_EQ(values(layer(x).value()), (std::vector<double>{-2, -0.25, 0, 3}));
  ASSERT_EQ(parameters.segments().size(), 1u);
  EXPECT_EQ(parameters.segments()[0].name, "slope");
  EXPECT_FALSE(parameters.segments()[0].decay);
}

TEST(PRelu, RefusesASlopeForEachChannel) {
  TestContext worker;
  const Variable x(worker.context, full({2, 3}, 1.0));
  const Variable slope(worker.context, full({3}, 0.25));
  EXPECT_EQ(error_of([&] { prelu(x, slope); }), "prelu: slope is (3), expected (1)");
}

}  // namespace
}  // namespace wisp::examples
