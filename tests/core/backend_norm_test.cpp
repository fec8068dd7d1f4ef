// Norms and pools of the backends, beside the reference in f64.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/core/backend_sides.h"

namespace wisp {
namespace {

std::vector<Tensor> pool(Side& side, const PoolSpec& s, bool accumulate) {
  const Shape x_shape{s.batch, s.height, s.width, s.channels};
  const Shape y_shape{s.batch, s.out_height(), s.out_width(), s.channels};
  const Tensor x = side.activation(x_shape, 1);
  const Tensor dy = side.activation(y_shape, 2);
  Tensor largest = side.zeros(y_shape, side.dtype);
  Tensor argmax = side.zeros(y_shape, DType::i32);
  Tensor mean = side.zeros(y_shape, side.dtype);
  const Tensor d_largest = side.activation(x_shape, 3);
  const Tensor d_mean = side.activation(x_shape, 4);
  side.backend->pools().max_pool(side.stream, s, x, largest, argmax);
  side.backend->pools().max_pool_dx(side.stream, s, dy, argmax, {d_largest, accumulate});
  side.backend->pools().avg_pool(side.stream, s, x, mean);
  side.backend->pools().avg_pool_dx(side.stream, s, dy, {d_mean, accumulate});
  return {largest, d_largest, mean, d_mean};
}

TEST(Backend, PoolingAgreesWithTheReference) {
  const PoolSpec shapes[] = {
      {.batch = 3, .height = 8, .width = 8, .channels = 16, .kernel = 2, .stride = 2},
      {.batch = 2, .height = 9, .width = 7, .channels = 5, .kernel = 3, .stride = 2, .pad = 1},
      {.batch = 2, .height = 6, .width = 7, .channels = 20, .kernel = 3, .stride = 1},
      {.batch = 2, .height = 5, .width = 5, .channels = 3, .kernel = 2, .stride = 3}};
  for (const PoolSpec& spec : shapes) {
    for (bool accumulate : {false, true})
      expect_all_agree([&](Side& side) { return pool(side, spec, accumulate); });
  }
}

TEST(Backend, MaxPoolTakesTheFirstOfEqualValues) {
  for (const Library library : {Library::fastest, Library::kernels}) {
    Side side(library);
    const PoolSpec spec{
        .batch = 1, .height = 2, .width = 2, .channels = 1, .kernel = 2, .stride = 2};
    const Tensor x({1, 2, 2, 1}, DType::f32);  // zeros
    Tensor y({1, 1, 1, 1}, DType::f32);
    Tensor argmax({1, 1, 1, 1}, DType::i32);
    side.backend->pools().max_pool(side.stream, spec, x, y, argmax);
    EXPECT_EQ(argmax.data<int32_t>()[0], 0);
  }
}

std::vector<Tensor> normalise(Side& side, const BatchNormSpec& s, bool accumulate, double offset) {
  const Shape shape{s.rows, s.channels};
  const Shape channels{s.channels};
  const Tensor x = side.activation(shape, 1, offset);
  const Tensor residual = side.activation(shape, 2);
  const Tensor dy = side.activation(shape, 3);
  const Tensor gamma = side.parameter(channels, 4, 1.0);
  const Tensor beta = side.parameter(channels, 5);
  Tensor running_mean = side.parameter(channels, 6);
  Tensor running_var = side.parameter(channels, 7, 8.0);
  Tensor mean = side.zeros(channels, wide_of(side.dtype));
  Tensor inv_std = side.zeros(channels, wide_of(side.dtype));
  Tensor y = side.activation(shape, 12), evaluated = side.activation(shape, 13);
  const int64_t mask_bytes = side.backend->norms().relu_mask_bytes(s, side.dtype);
  Tensor mask = mask_bytes > 0 ? side.zeros({mask_bytes}, DType::u8) : Tensor();
  GradSlot dx{side.activation(shape, 8), accumulate};
  const GradSlot d_residual{side.activation(shape, 9), accumulate};
  GradSlot d_gamma{side.parameter(channels, 10), accumulate};
  GradSlot d_beta{side.parameter(channels, 11), accumulate};
  const Tensor added = s.residual ? residual : Tensor();
  side.backend->norms().batch_norm(side.stream, s, x, gamma, beta, added, 0.1, running_mean,
                                   running_var, mean, inv_std, y, mask);
  side.backend->norms().batch_norm_eval(side.stream, s, x, gamma, beta, added, running_mean,
                                        running_var, evaluated);
  side.backend->norms().batch_norm_dx(side.stream, s, x, mask.defined() ? mask : y, dy, gamma, mean,
                                      inv_std, dx, s.residual ? d_residual : GradSlot{}, d_gamma,
                                      d_beta);
  return {y,       evaluated, running_mean,    running_var,  mean,
          inv_std, dx.into,   d_residual.into, d_gamma.into, d_beta.into};
}

TEST(Backend, BatchNormAgreesWithTheReference) {
  const BatchNormSpec shapes[] = {{.rows = 1037, .channels = 16},  // more rows than a chunk
                                  {.rows = 50, .channels = 7},
                                  {.rows = 5, .channels = 3},
                                  {.rows = 90, .channels = 130},
                                  {.rows = 70, .channels = 300}};
  for (BatchNormSpec spec : shapes) {
    for (int form = 0; form < 8; ++form) {
      SCOPED_TRACE(concat(spec.rows, " x ", spec.channels, ", form ", form));
      spec.relu = (form & 1) != 0;
      spec.residual = (form & 2) != 0;
      expect_all_agree([&](Side& side) { return normalise(side, spec, (form & 4) != 0, 0.0); });
    }
  }
}

TEST(Backend, BatchNormHasTheSameBitsWithAnyNumberOfThreads) {
  const BatchNormSpec spec{.rows = 3100, .channels = 24, .relu = true, .residual = true};
  const int before = omp_get_max_threads();
  std::vector<std::vector<Tensor>> results;
  for (const int threads : {1, 3}) {
    omp_set_num_threads(threads);
    for (const Library library : {Library::fastest, Library::kernels}) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        Side side(library, dtype, false);
        results.push_back(normalise(side, spec, true, 0.0));
      }
    }
  }
  omp_set_num_threads(before);
  for (size_t kind = 0; kind < 4; ++kind) {
    for (size_t i = 0; i < results[kind].size(); ++i)
      EXPECT_EQ(nmse(results[kind][i], results[kind + 4][i]), 0.0) << "result " << i;
  }
}

TEST(Backend, BatchNormHasTheSameBitsWhereTensorsAreNotAligned) {
  for (const int64_t channels : {16, 7}) {
    const BatchNormSpec spec{.rows = 201, .channels = channels, .relu = true, .residual = true};
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
      SCOPED_TRACE(concat(channels, " channels, ", name_of(dtype)));
      Side aligned(Library::kernels, dtype, true), moved(Library::kernels, dtype, true);
      moved.first_element = 1;
      const std::vector<Tensor> expected = normalise(aligned, spec, true, 0.0);
      const std::vector<Tensor> actual = normalise(moved, spec, true, 0.0);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(nmse(actual[i], expected[i]), 0.0) << "result " << i;
    }
  }
}

TEST(Backend, AReluPassesNeitherZeroNorNaNBack) {
  // 0 - 0 is zero before the ReLU; a bf16 may only be rounded to zero.
  const BatchNormSpec spec{.rows = 4, .channels = 8, .relu = true};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Side side(Library::kernels, dtype, true);
    const Tensor x = side.activation({4, 8}, 1), dy = side.activation({4, 8}, 2);
    const Tensor gamma = side.zeros({8}, DType::f32), beta = side.zeros({8}, DType::f32);
    set(beta, 1, std::numeric_limits<double>::quiet_NaN());
    set(beta, 2, 1e-45);  // the least f32, which bf16 rounds to zero
    set(beta, 3, 1.0);
    Tensor state = side.zeros({8}, DType::f32), mean = side.zeros({8}, DType::f32);
    Tensor inv_std = side.zeros({8}, DType::f32), y = side.zeros({4, 8}, dtype);
    Tensor mask = side.zeros({side.backend->norms().relu_mask_bytes(spec, dtype)}, DType::u8);
    side.backend->norms().batch_norm(side.stream, spec, x, gamma, beta, {}, 0.1, state, state, mean,
                                     inv_std, y, mask);
    GradSlot d_beta{side.zeros({8}, DType::f32), false};
    side.backend->norms().batch_norm_dx(side.stream, spec, x, mask, dy, gamma, mean, inv_std, {},
                                        {}, {}, d_beta);
    for (int64_t c = 0; c < 8; ++c) {
      double sum = 0.0;
      for (int64_t row = 0; row < 4; ++row) sum += at(dy, row * 8 + c);
      const bool passes = c == 3 || (c == 2 && dtype == DType::f32);
      EXPECT_NEAR(at(d_beta.into, c), passes ? sum : 0.0, 1e-6) << "channel " << c;
    }
  }
}

TEST(Backend, BatchNormIsExactFarFromZero) {
  // At 1000 standard deviations from zero, E[x²] - E[x]² would lose the variance in f32. bf16 is
  // left out because it cannot hold such numbers.
  const BatchNormSpec spec{.rows = 5000, .channels = 4};
  for (const Library library : {Library::fastest, Library::kernels})
    expect_agreement(
        Side(library), [&](Side& side) { return normalise(side, spec, false, 1000.0); }, kNmse);
}

TEST(Backend, UnwantedGradientsOfBatchNormMayHaveNoTensor) {
  const BatchNormSpec spec{.rows = 10, .channels = 3, .relu = true, .residual = true};
  const Tensor x = random({10, 3}, DType::f32, 1);
  const Tensor channel = random({3}, DType::f32, 2);
  for (const Library library : {Library::fastest, Library::kernels}) {
    Side side(library);
    GradSlot d_beta{Tensor({3}, DType::f32), false};
    Tensor passed = x;
    if (library == Library::kernels) {
      passed = Tensor({side.backend->norms().relu_mask_bytes(spec, DType::f32)}, DType::u8);
      for (int64_t i = 0; i < 30; ++i) passed.data<uint8_t>()[i] = at(x, i) > 0 ? 1 : 0;
    }
    side.backend->norms().batch_norm_dx(side.stream, spec, x, passed, x, channel, channel, channel,
                                        {}, {}, {}, d_beta);
    double sum = 0.0;
    for (int64_t row = 0; row < 10; ++row) sum += std::max(0.0, at(x, row * 3));
    EXPECT_NEAR(at(d_beta.into, 0), sum, 1e-5);  // ten f32 additions
  }
}

}  // namespace
}  // namespace wisp
