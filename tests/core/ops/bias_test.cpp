#include "core/ops/bias.h"

#include <gtest/gtest.h>

#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// Small integers, so that sums are exact in every type and order.
TEST(Bias, GradientIsTheSumOfTheRowsHoweverMany) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (const int64_t rows : {0, 1, 1024, 1025, 2055}) {
      for (const int64_t columns : {1, 16, 20}) {
        SCOPED_TRACE(concat(name_of(dtype), " ", rows, " x ", columns));
        TestContext worker({.compute = dtype});
        std::vector<double> dy, expected(static_cast<size_t>(columns), 100.0);
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            dy.push_back(static_cast<double>((r * r + c) % 7));
            expected[static_cast<size_t>(c)] += dy.back();
          }
        }
        const Tensor sum = full({columns}, 100.0, wide_of(dtype));
        sum_rows(worker.stream, worker.pool, tensor({1, rows, columns}, dy, dtype), {sum, true});
        EXPECT_EQ(values(sum), expected);
        for (double& value : expected) value -= 100.0;
        sum_rows(worker.stream, worker.pool, tensor({1, rows, columns}, dy, dtype), {sum, false});
        EXPECT_EQ(values(sum), expected);
      }
    }
  }
}

}  // namespace
}  // namespace wisp
