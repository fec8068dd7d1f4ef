#include "core/backend.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <vector>

#include "core/copy.h"
#include "core/ops/bias.h"
#include "core/random.h"
#include "tests/support/devices.h"
#include "tests/support/kernels_over.h"

namespace wisp {
namespace {

// f32 has a relative rounding error of 6e-8. Squared and summed over a few thousand terms, that
// leaves 1e-12. A wrong tap, border or scale gives 1e-2 and more.
constexpr double kNmse = 1e-7;
// bf16 has a relative rounding error of 4e-3, or 3e-6 squared on average. The subtractions of a
// batch norm magnify it.
constexpr double kNmseBf16 = 1e-4;

double at(const Tensor& t, int64_t i) {
  return dispatch_activation(t.dtype(), "at", [&](auto zero) {
    return static_cast<double>(wide(t.data<decltype(zero)>()[i]));
  });
}

void set(const Tensor& t, int64_t i, double value) {
  dispatch_activation(t.dtype(), "set", [&](auto zero) {
    using T = decltype(zero);
    store(t.data<T>() + i, static_cast<Wide<T>>(value));
  });
}

/// Uniform in (offset - 1, offset + 1), in steps that f32 (bf16, if `coarse`) holds exactly.
Tensor random(Shape shape, DType dtype, uint64_t id, double offset = 0.0, bool coarse = false) {
  Tensor t(shape, dtype);
  const Philox philox(1, 0, id);
  for (int64_t i = 0; i < t.numel(); ++i) {
    float value = 2.0f * philox.uniform(static_cast<uint64_t>(i)) - 1.0f;
    value += static_cast<float>(offset);
    set(t, i, static_cast<double>(coarse ? wide(BFloat16(value)) : value));
  }
  return t;
}

double nmse(const Tensor& actual, const Tensor& expected) {
  double error = 0.0;
  double norm = 0.0;
  for (int64_t i = 0; i < expected.numel(); ++i) {
    const double apart = at(actual, i) - at(expected, i);
    error += apart * apart;
    norm += at(expected, i) * at(expected, i);
  }
  return error / norm;
}

/// A backend and the type of the activations it is tested with. In comparisons with bf16, both
/// sides draw numbers that bf16 holds exactly, so they see the same ones.
struct Side {
  explicit Side(Library library)
      : Side(library, library == Library::reference ? DType::f64 : DType::f32, false) {}
  Side(Library library, DType activations, bool coarse_numbers, Device device = {})
      : pool(device),
        stream(Stream::on(device)),
        dtype(activations),
        coarse(coarse_numbers),
        backend(make_backend_of(library, pool, stream)) {}

  Tensor activation(Shape shape, uint64_t id, double offset = 0.0) {
    return placed(random(shape, dtype, id, offset, coarse));
  }
  Tensor parameter(Shape shape, uint64_t id, double offset = 0.0) {
    return placed(random(shape, wide_of(dtype), id, offset, coarse));
  }
  Tensor zeros(Shape shape, DType type) { return placed(Tensor(shape, type)); }

  MemoryPool pool;
  Stream stream;
  DType dtype;
  bool coarse;
  std::unique_ptr<Backend> backend;

 private:
  Tensor placed(const Tensor& host) {
    if (!stream.device().is_cuda()) return host;
    const Tensor there(host.shape(), host.dtype(), pool, stream.id());
    copy_now(stream, host, there);
    return there;
  }
};

/// Whether this machine has a device, and the libraries for its backends.
bool has_device() {
  try {
    cuda::check_device(first_device());
    return std::string(device_kind()) == "emulated" || missing_for_cuda().empty();
  } catch (const Error&) {
    return false;
  }
}

template <class Results>
void expect_agreement(Side actual_side, const Results& results, double tolerance) {
  SCOPED_TRACE(concat(actual_side.backend->name(), " ", name_of(actual_side.dtype)));
  Side reference(Library::reference, DType::f64, actual_side.coarse);
  const std::vector<Tensor> actual = results(actual_side);
  const std::vector<Tensor> expected = results(reference);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_LE(nmse(fetch(actual_side.stream, actual[i]), expected[i]), tolerance) << "result " << i;
}

/// What a device's library has for the results of a test.
enum class Offer {
  all,           // an algorithm for each
  perhaps_none,  // maybe none that gives the same bits each time
};

/// expect_agreement() on a device in f32 or bf16, or the error that names the lacking algorithm, if
/// the offer allows it.
template <class Results>
void expect_agreement_on_device(DType dtype, const Results& results, double tolerance,
                                Offer offer) {
  try {
    expect_agreement(Side(Library::fastest, dtype, dtype == DType::bf16, first_device()), results,
                     tolerance);
  } catch (const Error& error) {
    const std::string what = error.what();
    const bool named = what.find("cuDNN has no algorithm") != std::string::npos &&
                       what.find("that gives the same bits each time") != std::string::npos;
    EXPECT_TRUE(offer == Offer::perhaps_none && named) << what;
  }
}

/// Compares `results(side)`, a list of tensors, with the reference in f64: on the fastest backend
/// in f32 and bf16, on the reference in bf16, and on a device if there is one.
template <class Results>
void expect_agreement(const Results& results, Offer offer = Offer::all) {
  expect_agreement(Side(Library::fastest), results, kNmse);
  expect_agreement(Side(Library::reference, DType::bf16, true), results, kNmseBf16);
  if (missing_for(DType::bf16).empty())
    expect_agreement(Side(Library::fastest, DType::bf16, true), results, kNmseBf16);
  if (!has_device()) return;
  expect_agreement_on_device(DType::f32, results, kNmse, offer);
  if (std::string(device_kind()) == "emulated") return;  // its library is the CPU's
  expect_agreement(Side(Library::fastest, DType::f64, false, first_device()), results, kNmse);
  expect_agreement_on_device(DType::bf16, results, kNmseBf16, offer);
}

/// expect_agreement(), and the same for our own kernels in f32, f64 and bf16.
template <class Results>
void expect_all_agree(const Results& results) {
  expect_agreement(results);
  expect_agreement(Side(Library::kernels), results, kNmse);
  expect_agreement(Side(Library::kernels, DType::f64, false), results, kNmse);
  expect_agreement(Side(Library::kernels, DType::bf16, true), results, kNmseBf16);
}

TEST(Backend, GemmAgreesWithTheReference) {
  for (int form = 0; form < 8; ++form) {
    SCOPED_TRACE(form);
    expect_agreement([&](Side& side) {
      const GemmSpec spec{.m = 13,
                          .n = 37,
                          .k = 29,
                          .transpose_a = (form & 1) != 0,
                          .transpose_b = (form & 2) != 0};
      const bool accumulate = (form & 4) != 0;
      const Tensor a = side.activation({spec.m * spec.k}, 1);
      const Tensor activation = side.activation({spec.k * spec.n}, 2);
      const Tensor weight = side.parameter({spec.k * spec.n}, 2);
      const Tensor y = side.activation({spec.m, spec.n}, 3);
      const Tensor dw = side.parameter({spec.m, spec.n}, 3);
      side.backend->gemm(side.stream, spec, a, weight, {y, accumulate});
      side.backend->gemm(side.stream, spec, a, activation, {dw, accumulate});
      return std::vector<Tensor>{y, dw};
    });
  }
}

TEST(Backend, GemmAddsABiasWhereItsLibraryCan) {
  int by_library = 0;
  expect_all_agree([&](Side& side) {
    const GemmSpec spec{.m = 13, .n = 37, .k = 29, .transpose_b = true};
    const Tensor a = side.activation({spec.m, spec.k}, 1);
    const Tensor weight = side.parameter({spec.n, spec.k}, 2);
    const Tensor bias = side.parameter({spec.n}, 3);
    const Tensor c = side.zeros({spec.m, spec.n}, wide_of(side.dtype));
    if (side.backend->gemm_bias(side.stream, spec, a, weight, bias, c)) {
      ++by_library;
    } else {
      side.backend->gemm(side.stream, spec, a, weight, {c, false});
      add_bias(side.stream, bias, c);
    }
    return std::vector<Tensor>{c};
  });
  // our kernels over the reference, in three types; on a GPU also its library, in two
  EXPECT_EQ(by_library, has_device() && std::string(device_kind()) == "cuda" ? 5 : 3);
}

std::vector<Tensor> convolve(Side& side, const ConvSpec& s, bool accumulate) {
  const Shape x_shape{s.batch, s.height, s.width, s.in_channels};
  const Shape y_shape{s.batch, s.out_height(), s.out_width(), s.out_channels};
  const Shape w_shape{s.out_channels, s.kernel.h, s.kernel.w, s.in_channels / s.groups};
  const Tensor x = side.activation(x_shape, 1);
  const Tensor w = side.parameter(w_shape, 2);
  const Tensor dy = side.activation(y_shape, 3);
  Tensor y = side.activation(y_shape, 4);
  const Tensor dx = side.activation(x_shape, 5);
  const Tensor dw = side.parameter(w_shape, 6);
  side.backend->conv2d(side.stream, s, x, w, y);
  side.backend->conv2d_dx(side.stream, s, dy, w, {dx, accumulate});
  side.backend->conv2d_dw(side.stream, s, x, dy, {dw, accumulate});
  return {y, dx, dw};
}

ConvSpec conv(int64_t in, int64_t out, int64_t kernel) {
  return {.batch = 3,
          .height = 9,
          .width = 11,
          .in_channels = in,
          .out_channels = out,
          .kernel = kernel,
          .pad = kernel / 2};
}

void expect_convolution_agrees(const ConvSpec& spec) {
  const bool over_padded = spec.pad.h > spec.kernel.h / 2 || spec.pad.w > spec.kernel.w / 2;
  const bool rare = spec.groups > 1 || spec.dilation != Axes(1) || over_padded;
  for (bool accumulate : {false, true}) {
    SCOPED_TRACE(accumulate ? "accumulate" : "write");
    const auto results = [&](Side& side) { return convolve(side, spec, accumulate); };
    expect_agreement(results, rare ? Offer::perhaps_none : Offer::all);
    expect_agreement(Side(Library::kernels, DType::f64, false), results, kNmse);  // direct kernel
  }
}

TEST(Backend, ConvolutionAgreesWithTheReference) {
  expect_convolution_agrees(conv(3, 16, 3));  // a first layer
  expect_convolution_agrees(conv(16, 16, 3));
  expect_convolution_agrees(conv(5, 7, 3));  // channels that fill no vector
  expect_convolution_agrees(conv(32, 48, 1));
}

TEST(Backend, WideConvolutionAgreesWithTheReference) {
  // a library that has Winograd's algorithm uses it from 32 channels up
  expect_convolution_agrees(conv(32, 48, 3));
  expect_convolution_agrees(conv(36, 32, 3));
  ConvSpec spec = conv(64, 32, 3);
  spec.pad = 0;
  expect_convolution_agrees(spec);
}

TEST(Backend, StridedConvolutionAgreesWithTheReference) {
  ConvSpec spec = conv(16, 32, 3);
  spec.stride = 2;
  expect_convolution_agrees(spec);
  spec = conv(8, 16, 1);
  spec.stride = 2;  // the last column is never read, so its gradient is zero
  spec.width = 10;
  expect_convolution_agrees(spec);
  spec = conv(3, 64, 7);
  spec.stride = 2;
  expect_convolution_agrees(spec);
}

TEST(Backend, GroupedAndDilatedConvolutionsAgreeWithTheReference) {
  ConvSpec spec = conv(32, 64, 3);
  spec.groups = 2;
  expect_convolution_agrees(spec);
  spec = conv(16, 16, 3);
  spec.groups = 16;  // depthwise
  expect_convolution_agrees(spec);
  spec = conv(6, 9, 3);
  spec.groups = 3;
  expect_convolution_agrees(spec);
  spec = conv(16, 16, 3);
  spec.dilation = 2;
  spec.pad = 2;
  expect_convolution_agrees(spec);
}

TEST(Backend, ConvolutionWithUnequalAxesAgreesWithTheReference) {
  ConvSpec spec = conv(4, 8, 3);
  spec.kernel = {3, 5};
  expect_convolution_agrees(spec);
  spec = conv(32, 32, 3);  // fits Winograd's algorithm until one field changes
  for (Axes ConvSpec::*field : {&ConvSpec::kernel, &ConvSpec::stride, &ConvSpec::dilation}) {
    ConvSpec other = spec;
    ++(other.*field).w;
    expect_convolution_agrees(other);
  }
  spec.pad = {2, 0};
  expect_convolution_agrees(spec);
}

TEST(Backend, ConvolutionsOverTimeAndFrequencyAgreeWithTheReference) {
  ConvSpec spec{.batch = 2,
                .height = 5,
                .width = 161,
                .in_channels = 1,
                .out_channels = 32,
                .kernel = {11, 41},
                .stride = 2,
                .pad = {5, 20}};
  expect_convolution_agrees(spec);
  spec.height = 3;
  spec.width = 41;
  spec.in_channels = 32;
  spec.kernel = {11, 21};
  spec.stride = {1, 2};
  spec.pad = {5, 10};
  expect_convolution_agrees(spec);
  // frequency along the height, as in DeepSpeech
  spec = {.batch = 2,
          .height = 41,
          .width = 9,
          .in_channels = 1,
          .out_channels = 32,
          .kernel = {41, 11},
          .stride = 2,
          .pad = {20, 5}};
  expect_convolution_agrees(spec);
  spec.height = 21;
  spec.width = 5;
  spec.in_channels = 32;
  spec.kernel = {21, 11};
  spec.stride = {2, 1};
  spec.pad = {10, 5};
  expect_convolution_agrees(spec);
}

TEST(Backend, WideKernelsAgreeWithTheReference) {
  // a library without a kernel for so many columns convolves some at a time
  ConvSpec spec = conv(16, 16, 1);
  spec.kernel = {1, 23};
  spec.pad = {0, 30};  // some taps meet only padding
  expect_convolution_agrees(spec);
  spec.pad = {0, 11};
  spec.stride = {1, 4};
  expect_convolution_agrees(spec);
  spec.width = 60;
  spec.dilation = {1, 2};
  spec.pad = {0, 5};
  spec.stride = {1, 3};  // the last column is never read
  expect_convolution_agrees(spec);
  spec.in_channels = 32;
  spec.groups = 2;
  expect_convolution_agrees(spec);
  spec = conv(1, 32, 1);
  spec.kernel = {3, 20};
  spec.pad = {1, 18};  // padding for which oneDNN 2.6 is wrong in bf16
  expect_convolution_agrees(spec);
}

TEST(Backend, ConvolutionOfOnesCountsTaps) {
  Side side(Library::reference);
  const ConvSpec spec{.batch = 1,
                      .height = 3,
                      .width = 3,
                      .in_channels = 1,
                      .out_channels = 1,
                      .kernel = 3,
                      .stride = 2,
                      .pad = 1};
  Tensor x({1, 3, 3, 1}, DType::f64);
  Tensor w({1, 3, 3, 1}, DType::f64);
  Tensor y({1, 2, 2, 1}, DType::f64);
  for (int64_t i = 0; i < 9; ++i) set(x, i, static_cast<double>(i + 1));  // 1 2 3 / 4 5 6 / 7 8 9
  for (int64_t i = 0; i < 9; ++i) set(w, i, i == 4 ? 10.0 : 1.0);         // 10 at the centre tap
  side.backend->conv2d(side.stream, spec, x, w, y);
  EXPECT_EQ(at(y, 0), 1 * 10 + 2 + 4 + 5);
  EXPECT_EQ(at(y, 1), 3 * 10 + 2 + 5 + 6);
  EXPECT_EQ(at(y, 2), 7 * 10 + 4 + 5 + 8);
  EXPECT_EQ(at(y, 3), 9 * 10 + 5 + 6 + 8);
}

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
  side.backend->max_pool(side.stream, s, x, largest, argmax);
  side.backend->max_pool_dx(side.stream, s, dy, argmax, {d_largest, accumulate});
  side.backend->avg_pool(side.stream, s, x, mean);
  side.backend->avg_pool_dx(side.stream, s, dy, {d_mean, accumulate});
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
    side.backend->max_pool(side.stream, spec, x, y, argmax);
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
  Tensor y = side.zeros(shape, side.dtype);
  Tensor evaluated = side.zeros(shape, side.dtype);
  GradSlot dx{side.activation(shape, 8), accumulate};
  GradSlot d_residual{side.activation(shape, 9), accumulate};
  GradSlot d_gamma{side.parameter(channels, 10), accumulate};
  GradSlot d_beta{side.parameter(channels, 11), accumulate};
  const Tensor* added = s.residual ? &residual : nullptr;
  side.backend->batch_norm(side.stream, s, x, gamma, beta, added, 0.1, running_mean, running_var,
                           mean, inv_std, y);
  side.backend->batch_norm_eval(side.stream, s, x, gamma, beta, added, running_mean, running_var,
                                evaluated);
  side.backend->batch_norm_dx(side.stream, s, x, y, dy, gamma, mean, inv_std, &dx,
                              s.residual ? &d_residual : nullptr, &d_gamma, &d_beta);
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

TEST(Backend, BatchNormIsExactFarFromZero) {
  // At 1000 standard deviations from zero, E[x²] - E[x]² would lose the variance in f32. bf16 is
  // left out because it cannot hold such numbers.
  const BatchNormSpec spec{.rows = 5000, .channels = 4};
  for (const Library library : {Library::fastest, Library::kernels})
    expect_agreement(
        Side(library), [&](Side& side) { return normalise(side, spec, false, 1000.0); }, kNmse);
}

TEST(Backend, UnwantedGradientsOfBatchNormMayBeNull) {
  const BatchNormSpec spec{.rows = 10, .channels = 3, .relu = true, .residual = true};
  const Tensor x = random({10, 3}, DType::f32, 1);
  const Tensor channel = random({3}, DType::f32, 2);
  for (const Library library : {Library::fastest, Library::kernels}) {
    Side side(library);
    GradSlot d_beta{Tensor({3}, DType::f32), false};
    side.backend->batch_norm_dx(side.stream, spec, x, x, x, channel, channel, channel, nullptr,
                                nullptr, nullptr, &d_beta);
    double sum = 0.0;
    for (int64_t row = 0; row < 10; ++row) sum += std::max(0.0, at(x, row * 3));
    EXPECT_NEAR(at(d_beta.into, 0), sum, 1e-5);  // ten f32 additions
  }
}

TEST(Backend, NothingIsAllocatedAfterTheSecondCall) {
  Side side(Library::fastest);
  const ConvSpec spec = conv(16, 16, 3);
  for (int call = 0; call < 2; ++call) convolve(side, spec, true);
  const MemoryStats before = side.pool.stats();
  convolve(side, spec, true);
  EXPECT_EQ(side.pool.stats().system_allocations, before.system_allocations);
  EXPECT_EQ(side.pool.stats().used_bytes, before.used_bytes);
}

TEST(Backend, OneWorkspaceServesAllOps) {
  Side large(Library::fastest);
  convolve(large, conv(64, 64, 3), true);
  const int64_t bytes = large.backend->workspace_bytes();
  convolve(large, conv(16, 16, 3), true);
  EXPECT_EQ(large.backend->workspace_bytes(), bytes);
  Side small(Library::fastest);
  convolve(small, conv(16, 16, 3), true);
  EXPECT_LE(small.backend->workspace_bytes(), bytes);
}

/// A convolution whose three results need one library object each.
ConvSpec tall(int64_t height) {
  ConvSpec spec = conv(2, 3, 3);
  spec.batch = 1;
  spec.height = height;
  spec.width = 2;
  return spec;
}

TEST(Backend, KeepsTheObjectsOfTheShapesUsedLast) {
  constexpr int64_t kShapes = kMostKeptObjects / 3 + 10, kAgain = 5;
  Side side(Library::fastest), reference(Library::reference);
  std::vector<std::vector<Tensor>> first;
  for (int64_t height = 1; height <= kShapes; ++height) {
    const std::vector<Tensor> results = convolve(side, tall(height), true);
    const std::vector<Tensor> expected = convolve(reference, tall(height), true);
    for (size_t i = 0; i < 3; ++i)
      ASSERT_LE(nmse(results[i], expected[i]), kNmse) << "height " << height << ", result " << i;
    if (height <= kAgain) first.push_back(results);
  }
  const bool keeps = side.backend->name() == "onednn";
  EXPECT_EQ(side.backend->kept_objects(), keeps ? kMostKeptObjects : 0);
  const int64_t workspace = side.backend->workspace_bytes();
  for (int64_t height = 1; height <= kAgain; ++height) {
    const std::vector<Tensor> again = convolve(side, tall(height), true);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(nmse(again[i], first[static_cast<size_t>(height - 1)][i]), 0.0);
  }
  EXPECT_EQ(side.backend->kept_objects(), keeps ? kMostKeptObjects : 0);
  EXPECT_EQ(side.backend->workspace_bytes(), workspace);
}

TEST(Backend, WorksOnAStreamWithItsOwnThread) {
  MemoryPool memory;
  const Stream late = Stream::late();
  const std::unique_ptr<Backend> backend = make_backend(memory, late);
  Side side(Library::fastest);
  const ConvSpec spec = conv(16, 16, 3);
  const Tensor x = random({3, 9, 11, 16}, DType::f32, 1);
  const Tensor w = random({16, 3, 3, 16}, DType::f32, 2);
  Tensor there({3, 9, 11, 16}, DType::f32);
  Tensor here({3, 9, 11, 16}, DType::f32);
  backend->conv2d(late, spec, x, w, there);
  side.backend->conv2d(side.stream, spec, x, w, here);
  late.synchronize();
  EXPECT_LE(nmse(there, here), kNmse);
}

}  // namespace
}  // namespace wisp
