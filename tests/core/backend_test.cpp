#include "core/backend.h"

#include <vector>

#include "core/ops/bias.h"
#include "tests/core/backend_sides.h"

namespace wisp {
namespace {

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
      side.backend->products().gemm(side.stream, spec, a, weight, {y, accumulate});
      side.backend->products().gemm(side.stream, spec, a, activation, {dw, accumulate});
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
    if (side.backend->products().gemm_bias(side.stream, spec, a, weight, bias, c)) {
      ++by_library;
    } else {
      side.backend->products().gemm(side.stream, spec, a, weight, {c, false});
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
  Convolutions& convolutions = side.backend->convolutions();
  convolutions.convolve(side.stream, ConvPass::forward, s, x, w, {y});
  convolutions.convolve(side.stream, ConvPass::dx, s, dy, w, {dx, accumulate});
  convolutions.convolve(side.stream, ConvPass::dw, s, x, dy, {dw, accumulate});
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
  side.backend->convolutions().convolve(side.stream, ConvPass::forward, spec, x, w, {y});
  EXPECT_EQ(at(y, 0), 1 * 10 + 2 + 4 + 5);
  EXPECT_EQ(at(y, 1), 3 * 10 + 2 + 5 + 6);
  EXPECT_EQ(at(y, 2), 7 * 10 + 4 + 5 + 8);
  EXPECT_EQ(at(y, 3), 9 * 10 + 5 + 6 + 8);
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
  backend->convolutions().convolve(late, ConvPass::forward, spec, x, w, {there});
  side.backend->convolutions().convolve(side.stream, ConvPass::forward, spec, x, w, {here});
  late.synchronize();
  EXPECT_LE(nmse(there, here), kNmse);
}

}  // namespace
}  // namespace wisp
