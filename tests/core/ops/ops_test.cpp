#include "core/ops.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <string>

#include "tests/support/error_of.h"
#include "tests/support/leaves.h"
#include "tests/support/ops_value.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

INSTANTIATE_TEST_SUITE_P(Types, OpsValue, testing::Values(DType::f32, DType::f64),
                         [](const auto& tested) { return name_of(tested.param); });

TEST_P(OpsValue, Conv2d) {
  const Variable x = constant({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const Variable weight = constant({1, 2, 2, 1}, {1, 10, 100, 1000});
  expect_values(conv2d(x, weight), {1, 1, 2, 1}, {5421, 6532});
  expect_values(conv2d(x, weight, {.stride = 2, .pad = 1}), {1, 2, 2, 1}, {1000, 3200, 40, 65});
  expect_values(conv2d(x, weight, {.stride = {2, 1}, .pad = {0, 1}}, constant({1}, {0.5})),
                {1, 1, 4, 1}, {4010.5, 5421.5, 6532.5, 603.5});
}

std::vector<double> counting(int64_t n, double first, double step) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(first + static_cast<double>(i) * step);
  return numbers;
}

/// Numbers of PyTorch 2.15's conv2d in f64, all of which f32 holds exactly.
TEST_P(OpsValue, Conv2dWithUnequalAxesIsPyTorchs) {
  const Variable x = constant({1, 3, 4, 2}, counting(24, 1, 1));
  const Variable bias = constant({2}, {0.5, -1});
  expect_values(conv2d(x, constant({2, 2, 3, 2}, counting(24, -1.375, 0.125)),
                       {.stride = {1, 2}, .pad = {0, 2}, .dilation = {2, 1}}, bias),
                {1, 1, 3, 2}, {-4, 51.5, -54, 151.5, -68.5, 104});
  expect_values(conv2d(x, constant({2, 2, 3, 1}, counting(12, -1.375, 0.25)),
                       {.stride = {2, 1}, .pad = {1, 0}, .groups = 2}, bias),
                {1, 2, 2, 2}, {-1.875, 13.5, -4.125, 20.25, -56, 82, -65, 91});
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
  expect_values(clipped_relu(a, 1.5), {3}, {0, 0, 1.5});
  expect_values(add(a, constant({3}, {10, 20, 30})), {3}, {9, 20, 32});
  expect_values(reshape(a, {1, 3}), {1, 3}, {-1, 0, 2});
}

/// Numbers of PyTorch 2.15's sigmoid in f64.
TEST_P(OpsValue, SigmoidIsPyTorchs) {
  Leaves leaves;
  const Variable x =
      leaves.make(worker_.context, tensor({5}, {-3.0, -0.5, 0.0, 1.25, 8.0}, GetParam()));
  const Variable y = sigmoid(x);
  expect_values(y, {5}, {0.047425873, 0.377540669, 0.5, 0.777299861, 0.999664650});
  backward(linear(reshape(y, {1, 5}), constant({1, 5}, {1, 1, 1, 1, 1}), {}));
  const Variable gradient(worker_.context, leaves.gradients()[0]);
  expect_values(gradient, {5}, {0.045176660, 0.235003712, 0.25, 0.173104787, 0.000335238});
}

TEST_P(OpsValue, ColumnsAndJoinColumns) {
  const Variable x = constant({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_values(columns(x, 1, 3), {2, 2}, {2, 3, 5, 6});
  expect_values(join_columns({columns(x, 2, 3), x}), {2, 4}, {3, 1, 2, 3, 6, 4, 5, 6});
  expect_values(columns(reshape(x, {1, 2, 3}), 0, 1), {1, 2, 1}, {1, 4});
}

/// Three sequences of 3, 2 and 1 positions. Each pixel's digits are its sequence, row and position.
TEST_P(OpsValue, PackedFramesLieByPosition) {
  const Variable images = constant({3, 2, 3, 1}, {100, 101, 102, 110, 111, 112,  //
                                                  200, 201, -1, 210, 211, -1,    //
                                                  300, -1, -1, 310, -1, -1});
  const Variable packed = pack_frames(images, {3, 2, 1});
  expect_values(packed, {6, 2, 1}, {100, 110, 200, 210, 300, 310, 101, 111, 201, 211, 102, 112});
  expect_values(unpack_frames(packed, {3, 2, 1}, 3), {3, 2, 3, 1},
                {100, 101, 102, 110, 111, 112,  //
                 200, 201, 0, 210, 211, 0,      //
                 300, 0, 0, 310, 0, 0});
  expect_values(pack_frames(images, {1}), {1, 2, 1}, {100, 110});
  const std::vector<int64_t> many(1000, 1);  // more positions than one launch passes to a device
  const Variable line = constant({1000, 1, 1}, std::vector<double>(1000, 2.0));
  expect_values(pack_frames(unpack_frames(line, many, 1001), many), {1000, 1, 1},
                std::vector<double>(1000, 2.0));
}

TEST_P(OpsValue, SwapLast) {
  expect_values(swap_last(constant({1, 2, 3}, {1, 2, 3, 4, 5, 6})), {1, 3, 2}, {1, 4, 2, 5, 3, 6});
}

TEST_P(OpsValue, ReluKeepsNaN) {
  EXPECT_TRUE(std::isnan(values(relu(constant({1}, {NAN})).value())[0]));
  EXPECT_TRUE(std::isnan(values(clipped_relu(constant({1}, {NAN}), 1.0).value())[0]));
}

TEST_P(OpsValue, Pools) {
  const Variable x = constant({1, 3, 3, 1}, {-1, -2, -3, -4, -5, -6, -7, -8, -9});
  expect_values(max_pool2d(x, 2, {.stride = 1}), {1, 2, 2, 1}, {-1, -2, -4, -5});
  expect_values(max_pool2d(x, 2, {.pad = 1}), {1, 2, 2, 1}, {-1, -2, -4, -5});
  expect_values(avg_pool2d(x, 2, {.pad = 1}), {1, 2, 2, 1}, {-0.25, -1.25, -2.75, -7});
  expect_values(global_avg_pool(x), {1, 1}, {-5});
}

/// Numbers of PyTorch 2.15's adaptive_avg_pool2d for the squares of 1 to 12.
TEST_P(OpsValue, AdaptiveAvgPoolIsPyTorchs) {
  const Variable x = constant({1, 3, 4, 1}, {1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144});
  expect_values(adaptive_avg_pool(x, {2, 3}), {1, 2, 3, 1}, {16.5, 24.5, 34.5, 60.5, 76.5, 94.5});
  expect_values(adaptive_avg_pool(x, {5, 2}), {1, 5, 2, 1},
                {2.5, 12.5, 16.5, 34.5, 30.5, 56.5, 60.5, 94.5, 90.5, 132.5});
  expect_values(adaptive_avg_pool(x, {3, 1}), {1, 3, 1, 1}, {7.5, 43.5, 111.5});
  EXPECT_EQ(adaptive_avg_pool(x, {3, 4}).node(), x.node()) << "has the size already";
}

TEST_P(OpsValue, FlattenIsChannelByChannel) {
  const Variable x = constant({2, 1, 3, 2}, {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60});
  expect_values(flatten(x), {2, 6}, {1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60});
}

TEST_P(OpsValue, Linear) {
  const Variable x = constant({2, 2}, {1, 2, 3, 4});
  const Variable weight = constant({3, 2}, {1, 0, 0, 1, 1, 1});
  expect_values(linear(x, weight, {}), {2, 3}, {1, 2, 3, 3, 4, 7});
  expect_values(linear(x, weight, constant({3}, {10, 20, 30})), {2, 3}, {11, 22, 33, 13, 24, 37});
}

TEST_P(OpsValue, EmbeddingOfUnknownIdsIsZero) {
  const Variable table = constant({2, 2}, {1, 2, 3, 4});
  expect_values(embedding(table, tensor_of<int32_t>({1, -1, 2, 0, 1})), {5, 2},
                {3, 4, 0, 0, 0, 0, 1, 2, 3, 4});
  EXPECT_EQ(embedding(table, tensor_of<int32_t>({})).shape(), Shape({0, 2}));
}

/// More columns than one index adds up, rows that occur often or never, and several thread counts.
TEST_P(OpsValue, EmbeddingAddsGradientsInTheOrderOfIds) {
  const int64_t rows = 300, entries = 50, width = 130;
  Tensor ids({rows}, DType::i32);
  for (int64_t i = 0; i < rows; ++i) ids.data<int32_t>()[i] = static_cast<int32_t>(i * i % 53) - 1;
  const Tensor weight = random_tensor({1, width}, 2, GetParam());
  const Tensor row_weight = random_tensor({1, rows}, 3, GetParam());
  const std::vector<double> by_row = values(row_weight), by_column = values(weight);
  std::vector<double> expected(static_cast<size_t>(entries * width));
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t id = ids.data<int32_t>()[i];
    for (int64_t c = 0; id >= 0 && id < entries && c < width; ++c)
      expected[static_cast<size_t>(id * width + c)] +=
          by_row[static_cast<size_t>(i)] * by_column[static_cast<size_t>(c)];
  }
  const int before = omp_get_max_threads();
  std::vector<double> first;
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    Leaves leaves;
    const Variable table = leaves.make(worker_.context, full({entries, width}, 0.0, GetParam()));
    const Variable y = linear(embedding(table, ids), {worker_.context, weight}, {});
    backward(linear(reshape(y, {1, rows}), {worker_.context, row_weight}, {}));
    const std::vector<double> found = values(leaves.gradients()[0]);
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << threads << " threads";
  }
  omp_set_num_threads(before);
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(first[i], expected[i], 1e-5) << i;
}

TEST_P(OpsValue, ATiedTableGetsTheSumOfBothGradients) {
  const Tensor numbers = random_tensor({40, 70}, 1, GetParam());
  const Tensor ids = tensor_of<int32_t>({3, 39, 3, 0, 17}),
               labels = tensor_of<int32_t>({1, 2, 3, 39, 5});
  Leaves leaves;
  const Variable tied = leaves.make(worker_.context, numbers);
  const Variable table = leaves.make(worker_.context, numbers);
  const Variable weight = leaves.make(worker_.context, numbers);
  backward(cross_entropy(linear(embedding(tied, ids), tied, {}), labels));
  backward(cross_entropy(linear(embedding(table, ids), weight, {}), labels));
  const std::vector<double> found = values(leaves.gradients()[0]);
  const std::vector<double> a = values(leaves.gradients()[1]), b = values(leaves.gradients()[2]);
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], a[i] + b[i], 1e-7) << i;
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
  // 1 + 2^-8 is half way between two bf16 numbers and rounds to 1. 256 + 1 + 1 = 258 is a bf16
  // number, 256 + 1 is not.
  const Variable x = constant({1, 3}, {256, 1, 1}, DType::bf16);
  const Variable weight = constant({1, 3}, {1 + 0x1p-8, 1, 1}, DType::f32);
  const Variable y = linear(x, weight, {});
  EXPECT_EQ(y.value().dtype(), DType::bf16);
  EXPECT_EQ(values(y.value())[0], 258);
}

/// Numbers of PyTorch 2.15 in f64: embedding, linear with the same weights, and cross_entropy.
TEST_P(OpsValue, ATiedOutputLayerIsPyTorchs) {
  Leaves leaves;
  const Tensor numbers = tensor({4, 2}, {0.5, -1.0, 1.5, 0.25, -0.75, 2.0, 1.0, 0.125}, GetParam());
  const Variable table = leaves.make(worker_.context, numbers);
  const Variable bias =
      leaves.make(worker_.context, tensor({4}, {0.5, 0.0, -0.25, 1.0}, GetParam()));
  const Variable x = embedding(table, tensor_of<int32_t>({2, 0, 2}));
  const Variable loss = cross_entropy(linear(x, table, bias), tensor_of<int32_t>({0, 3, 1}));
  expect_values(loss, {}, {4.082664912672867});
  backward(loss);
  const Tensor d_table = leaves.gradients()[0], d_bias = leaves.gradients()[1];
  expect_values({worker_.context, d_table}, {4, 2},
                {0.269346092, -1.010634081, 0.270561737, -0.705471913, -1.613341136, 2.835185715,
                 -0.119710881, 0.246562407});
  expect_values({worker_.context, d_bias}, {4},
                {-0.164195705, -0.280618719, 0.648532960, -0.203718537});
}

TEST(Ops, AWideProductInBf16KeepsItsSumsAndRoundsItsGradientOnce) {
  for (const bool fastest : {false, true}) {
    if (fastest && !missing_for(DType::bf16).empty()) continue;
    TestContext worker(
        {.compute = DType::bf16, .library = fastest ? Library::fastest : Library::reference});
    Leaves leaves;
    const Variable x = leaves.make(worker.context, tensor({1, 3}, {256, 1, 1}, DType::bf16));
    const Variable weight =
        leaves.make(worker.context, tensor({1, 3}, {1 + 0x1p-8, 1, 2}, DType::f32));
    const Variable bias = leaves.make(worker.context, tensor({1}, {0.25}, DType::f32));
    const Variable y = linear(x, weight, bias, {.wide = true});
    EXPECT_EQ(y.value().dtype(), DType::f32);
    EXPECT_EQ(values(y.value())[0], 259.25) << "no bf16; of the weight 1 + 2^-8 rounds to 1";
    backward(y, {.seed = 1 + 0x1p-8});
    EXPECT_EQ(values(leaves.gradients()[0]), std::vector<double>({1, 1, 2}));
    EXPECT_EQ(values(leaves.gradients()[1]), std::vector<double>({256, 1, 1}));
    EXPECT_EQ(values(leaves.gradients()[2]), std::vector<double>({1 + 0x1p-8}));
  }
}

TEST_P(OpsValue, AWideProductIsTheSameWithoutBf16) {
  const Variable x = constant({2, 2}, {1, 2, 3, 4});
  const Variable weight = constant({3, 2}, {1, 0, 0, 1, 1, 1});
  const Variable y = linear(x, weight, {}, {.wide = true});
  EXPECT_EQ(y.value().dtype(), GetParam());
  EXPECT_EQ(values(y.value()), values(linear(x, weight, {}).value()));
}

TEST_P(OpsValue, PadChannels) {
  const Variable x = constant({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6});
  expect_values(pad_channels(x, 4, 2), {1, 1, 2, 4}, {0, 1, 2, 0, 0, 5, 6, 0});
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

TEST(Ops, DropoutWithFewerKeysIsTheSameForEachOfTheirTurns) {
  TestContext worker;
  const auto mask = [&](int64_t rows, const Tensor& keys) {
    return dropout(Variable(worker.context, full({rows, 70}, 1.0)), 0.5, 2, keys).value();
  };
  const std::vector<double> once = values(mask(3, sample_ids(3, 5)));
  const Tensor locked = mask(9, sample_ids(3, 5));
  for (int64_t turn = 0; turn < 3; ++turn)
    EXPECT_EQ(values(locked.rows(3 * turn, 3 * turn + 3)), once) << turn;
  EXPECT_NE(values(locked.rows(0, 1)), values(locked.rows(1, 2))) << "another column";
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
              conv2d(image, zeros({8, 3, 7, 3}), {.pad = {0, 1}});
            }).find("reaches over 3 x 7 does not fit into input (1, 4, 4, 3) with pad 0 x 1"),
            std::string::npos);
  EXPECT_EQ(error([&] {
              conv2d(image, zeros({8, 3, 3, 3}), {.stride = {1, 0}});
            }),
            "conv2d: stride 1 x 0, pad 0 x 0, dilation 1 x 1, groups 1, expected positive numbers "
            "(pad may be 0)");
  EXPECT_EQ(error([&] {
              conv2d(image, zeros({8, 3, 3, 3}), {}, zeros({3}));
            }),
            "conv2d: bias (3) f64, expected (8) f64");
  EXPECT_NE(error([&] { add(image, zeros({3})); }).find("(1, 4, 4, 3)"), std::string::npos);
  EXPECT_NE(error([&] {
              linear(zeros({2, 3}), zeros({4, 5}), {});
            }).find("(4, 5)"),
            std::string::npos);
  EXPECT_NE(error([&] { reshape(image, {7}); }).find("48"), std::string::npos);
  EXPECT_NE(error([&] { max_pool2d(image, 2, {.pad = 2}); }).find("pad 2"), std::string::npos);
  EXPECT_NE(error([&] { pad_channels(image, 2, 1); }).find("2 channels"), std::string::npos);
  EXPECT_EQ(error([&] {
              adaptive_avg_pool(image, {0, 2});
            }),
            "adaptive_avg_pool: to 0 x 2 positions, expected positive numbers");
  EXPECT_EQ(error([&] {
              adaptive_avg_pool(zeros({2, 3}), 1);
            }),
            "adaptive_avg_pool: input is (2, 3), expected (N, H, W, C) with at least one position "
            "and channel");
  EXPECT_EQ(error([&] {
              flatten(zeros({2, 3}));
            }),
            "flatten: input is (2, 3), expected (N, H, W, C)");
  EXPECT_EQ(error([&] {
              count_correct_by_class(zeros({1, 3}), tensor_of<int32_t>({1}), tensor({2}, {0, 0}));
            }),
            "count_correct_by_class: sums are (2) f64, expected (3, 2) f64");
  EXPECT_NE(error([&] { clipped_relu(image, 0.0); }).find("expected a positive"),
            std::string::npos);
  EXPECT_EQ(
      error([&] {
        pack_frames(image, {1, 2});
      }),
      "pack_frames: 2 sequences reach position 1 and 1 the one before, expected the longest first");
  EXPECT_EQ(error([&] { pack_frames(image, {2}); }),
            "pack_frames: 2 sequences of 1 positions beside images of (1, 4, 4, 3)");
  EXPECT_EQ(error([&] {
              unpack_frames(zeros({7, 1, 1}), {2, 1}, 3);
            }),
            "unpack_frames: the input is (7, 1, 1), expected (3, H, C)");
  EXPECT_EQ(error([&] { swap_last(zeros({7})); }),
            "swap_last: the input is (7), expected (..., A, B)");
  EXPECT_EQ(error([&] { columns(zeros({2, 3}), 2, 4); }), "columns: [2, 4) of (2, 3)");
  EXPECT_NE(error([&] {
              join_columns({zeros({2, 3}), zeros({3, 3})});
            }).find("(3, 3) f64 beside (2, 3) f64"),
            std::string::npos);
  EXPECT_NE(error([&] { dropout(image, 1.0, 0); }).find("[0, 1)"), std::string::npos);
  EXPECT_NE(error([&] { dropout(image, 0.5, 0); }).find("with 0 keys"), std::string::npos);
  EXPECT_NE(error([&] {
              dropout(zeros({4, 2}), 0.5, 0, sample_ids(3));
            }).find("(4, 2) with 3 keys, expected"),
            std::string::npos);
  EXPECT_NE(error([&] {
              cross_entropy(zeros({2, 3}), tensor_of<int32_t>({1}));
            }).find("(2) i32"),
            std::string::npos);
  EXPECT_NE(error([&] {
              const Variable logits(worker.context, Tensor({1, 3}, DType::bf16));
              cross_entropy(logits, tensor_of<int32_t>({1}));
            }).find("widen()"),
            std::string::npos);
  const auto norm_state = [](int64_t channels) {
    return BatchNormState{.running_mean = full({channels}, 0.0),
                          .running_var = full({channels}, 1.0)};
  };
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
