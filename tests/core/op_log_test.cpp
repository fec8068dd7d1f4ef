#include "core/op_log.h"

#include <gtest/gtest.h>

#include "core/ops.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

TEST(OpLog, HoldsWhatWasComputedInOrder) {
  TestContext worker;
  std::vector<LoggedOp> log;
  worker.context.log = &log;
  const Variable x(worker.context, random_tensor({1, 4, 4, 2}, 1));
  const Variable weight(worker.context, random_tensor({3, 3, 3, 2}, 2));
  const Variable y = conv2d(x, weight, {.stride = {2, 3}, .pad = {1, 0}});
  const Variable z = relu(y);
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0].name, "conv2d");
  EXPECT_EQ(log[0].inputs[0].node(), x.node());
  EXPECT_EQ(log[0].inputs[1].node(), weight.node());
  EXPECT_EQ(log[0].output.node(), y.node());
  EXPECT_EQ(log[0].attributes, (std::map<std::string, double>{{"stride_h", 2},
                                                              {"stride_w", 3},
                                                              {"pad_h", 1},
                                                              {"pad_w", 0},
                                                              {"dilation_h", 1},
                                                              {"dilation_w", 1},
                                                              {"groups", 1}}));
  EXPECT_EQ(log[1].name, "relu");
  EXPECT_EQ(log[1].inputs[0].node(), y.node());
  EXPECT_EQ(log[1].output.node(), z.node());
}

TEST(OpLog, ANormThatEvaluatesTellsItsStatistics) {
  TestContext worker;
  std::vector<LoggedOp> log;
  worker.context.log = &log;
  worker.context.training = false;
  BatchNormState state{.running_mean = full({2}, 1.0), .running_var = full({2}, 4.0)};
  const Variable x(worker.context, random_tensor({3, 2}, 1));
  const Variable residual(worker.context, random_tensor({3, 2}, 2));
  const Variable scale(worker.context, full({2}, 1.0));
  batch_norm(x, scale, scale, state, {.relu = true, .residual = &residual});
  ASSERT_EQ(log.size(), 1u);
  ASSERT_EQ(log[0].inputs.size(), 6u);
  EXPECT_EQ(log[0].inputs[3].node(), residual.node());
  EXPECT_EQ(log[0].inputs[4].value().raw(), state.running_mean.raw());
  EXPECT_EQ(log[0].inputs[5].value().raw(), state.running_var.raw());
  EXPECT_EQ(log[0].attributes,
            (std::map<std::string, double>{{"epsilon", 1e-5}, {"relu", 1}, {"residual", 1}}));
}

TEST(OpLog, AnEmbeddingTellsItsIds) {
  TestContext worker;
  std::vector<LoggedOp> log;
  worker.context.log = &log;
  const Variable table(worker.context, random_tensor({5, 2}, 1));
  const Tensor ids = tensor_of<int32_t>({3, 0, 3});
  embedding(table, ids);
  ASSERT_EQ(log.size(), 1u);
  ASSERT_EQ(log[0].inputs.size(), 2u);
  EXPECT_EQ(log[0].inputs[0].node(), table.node());
  EXPECT_EQ(log[0].inputs[1].value().raw(), ids.raw());
}

TEST(OpLog, IsFilledWhereAContextAsksForIt) {
  TestContext worker;
  std::vector<LoggedOp> log;
  worker.context.log = &log;
  const Variable x(worker.context, random_tensor({4}, 1));
  worker.context.log = nullptr;
  relu(x);
  EXPECT_TRUE(log.empty());
}

}  // namespace
}  // namespace wisp
