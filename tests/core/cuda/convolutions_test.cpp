// Tests of the convolutions of CUDA devices over the stand-in for cuDNN, which refuses what a test
// tells it to refuse.
#include "core/cuda/convolutions.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/copy.h"
#include "core/device/device_remarks.h"
#include "core/device/device_work.h"
#include "core/emulated/cudnn.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

using cuda::Convolutions;
using emulated::cudnn_controls;
using emulated::CudnnCall;

constexpr ConvPass kPasses[] = {ConvPass::forward, ConvPass::dx, ConvPass::dw};

/// A convolution of small integers. All sums are exact in f32 and bf16.
struct Exact {
  explicit Exact(ConvSpec of, DType of_factors = DType::f32, const GpuMath& math = {})
      : spec(of),
        factors(of_factors),
        workspace(rig.pool),
        convolutions(std::in_place, rig.pool, workspace, math) {}
  ~Exact() { cudnn_controls() = {.handles = cudnn_controls().handles}; }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;

  Shape shape(int which) const {
    if (which == 0) return {spec.batch, spec.height, spec.width, spec.in_channels};
    if (which == 1)
      return {spec.out_channels, spec.kernel.h, spec.kernel.w, spec.in_channels / spec.groups};
    return {spec.batch, spec.out_height(), spec.out_width(), spec.out_channels};
  }
  /// Image (0), weight (1) or output (2) with numbers from -1 to 1.
  Tensor drawn(int which, DType dtype) const {
    std::vector<double> values;
    for (int64_t i = 0; i < shape(which).numel(); ++i)
      values.push_back(static_cast<double>((i * 7 + which) % 3 - 1));
    return tensor(shape(which), values, dtype);
  }
  Tensor on_device(const Tensor& host) {
    const Tensor there = rig.context.empty(host.shape(), host.dtype());
    copy_now(rig.stream, host, there);
    return there;
  }

  /// The pass by cuDNN, into a result of type `into` that holds drawn numbers before.
  std::vector<double> result(ConvPass pass, DType into, bool accumulate) {
    const auto [first, second, last] = places(pass);
    const Tensor made = on_device(drawn(last, into));
    convolutions->convolve(rig.stream, pass, spec, on_device(drawn(first, factors)),
                           on_device(drawn(second, factors)), {made, accumulate});
    return values(fetch(rig.stream, made));
  }
  std::vector<double> expected(ConvPass pass, bool accumulate) {
    const auto [first, second, last] = places(pass);
    TestContext host;
    const Tensor a = drawn(first, DType::f64), b = drawn(second, DType::f64);
    const Tensor made = drawn(last, DType::f64);
    wisp::Convolutions& reference = host.context.backend.convolutions();
    reference.convolve(host.stream, pass, spec, a, b, {made, accumulate});
    return values(made);
  }

  struct Places {
    int first, second, result;
  };
  static Places places(ConvPass pass) {
    if (pass == ConvPass::forward) return {0, 1, 2};
    return pass == ConvPass::dx ? Places{2, 1, 0} : Places{0, 2, 1};
  }

  TestContext rig{{.device = first_device()}};
  const ConvSpec spec;
  const DType factors;
  Workspace workspace;
  std::optional<Convolutions> convolutions;
};

/// A 3 x 3 convolution. Its height makes the shape one test's own, because remarks are made once.
ConvSpec square(int64_t height) {
  return {.batch = 2,
          .height = height,
          .width = 5,
          .in_channels = 4,
          .out_channels = 6,
          .kernel = 3,
          .pad = 1,
          .groups = 2};
}

cudnnStatus_t refuse_bf16(const CudnnCall& call) {
  return call.dtype == DType::bf16 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}

TEST(CudaConvolutions, AreTheLibrarys) {
  for (const DType factors : {DType::f32, DType::bf16}) {
    Exact exact(square(5), factors);
    for (const ConvPass pass : kPasses) {
      EXPECT_EQ(exact.result(pass, factors, false), exact.expected(pass, false));
      if (pass == ConvPass::forward) continue;
      EXPECT_EQ(exact.result(pass, factors, true), exact.expected(pass, true));
    }
    ASSERT_EQ(cudnn_controls().done.size(), 5u);
    for (const CudnnCall& call : cudnn_controls().done) {
      EXPECT_EQ(call.algorithm, 0);
      EXPECT_EQ(call.dtype, factors);
      EXPECT_EQ(call.math, factors == DType::bf16 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH);
    }
  }
}

TEST(CudaConvolutions, AddBf16GradientsToThoseInF32) {
  Exact exact(square(5), DType::bf16);
  EXPECT_EQ(exact.result(ConvPass::dw, DType::f32, true), exact.expected(ConvPass::dw, true));
  ASSERT_EQ(cudnn_controls().done.size(), 1u);
  EXPECT_EQ(cudnn_controls().done[0].dtype, DType::bf16);
}

TEST(CudaConvolutions, InBf16RunInTf32WhereTheLibraryRefuses) {
  take_device_remarks();
  const int64_t before = device_work().fallbacks;
  Exact exact(square(6), DType::bf16);
  cudnn_controls().status_of = refuse_bf16;
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(exact.result(ConvPass::forward, DType::bf16, false),
              exact.expected(ConvPass::forward, false));
    EXPECT_EQ(exact.result(ConvPass::dx, DType::bf16, true), exact.expected(ConvPass::dx, true));
    EXPECT_EQ(exact.result(ConvPass::dw, DType::f32, true), exact.expected(ConvPass::dw, true));
  }
  EXPECT_EQ(device_work().fallbacks - before, 6);
  for (const CudnnCall& call : cudnn_controls().done) {
    EXPECT_EQ(call.dtype, DType::f32);
    EXPECT_EQ(call.math, CUDNN_DEFAULT_MATH);  // takes TF32
  }
  const std::vector<std::string> remarks = take_device_remarks();
  ASSERT_EQ(remarks.size(), 3u);  // each pass once
  EXPECT_EQ(remarks[0],
            "conv2d: images (2, 6, 5, 4), weight (6, 3, 3, 2), stride 1 x 1, pad 1 x 1, dilation "
            "1 x 1, bf16: cuDNN has no algorithm (CUDNN_STATUS_NOT_SUPPORTED) that gives the same "
            "bits each time; train.deterministic = false lets it take others; it runs in f32, "
            "which is several times slower");
  EXPECT_EQ(remarks[1].find("conv2d_dx: "), 0u);
  EXPECT_EQ(remarks[2].find("conv2d_dw: "), 0u);
}

TEST(CudaConvolutions, InF32KeepTheirBitsUnlessTf32IsAskedFor) {
  for (const bool tf32 : {false, true}) {
    Exact exact(square(5), DType::f32, {.tf32 = tf32});
    exact.result(ConvPass::forward, DType::f32, false);
    ASSERT_EQ(cudnn_controls().done.size(), 1u);
    EXPECT_EQ(cudnn_controls().done[0].math, tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH);
  }
}

TEST(CudaConvolutions, AddThroughATemporaryWhereTheLibraryCannotAdd) {
  for (const DType factors : {DType::f32, DType::bf16}) {
    Exact exact(square(5), factors);
    cudnn_controls().status_of = [](const CudnnCall& call) {
      return call.accumulate ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
    };
    const int64_t before = device_work().fallbacks;
    for (const ConvPass pass : {ConvPass::dx, ConvPass::dw})
      EXPECT_EQ(exact.result(pass, factors, true), exact.expected(pass, true));
    EXPECT_EQ(device_work().fallbacks, before);
    for (const CudnnCall& call : cudnn_controls().done) {
      EXPECT_EQ(call.algorithm, 0);  // still the best one for writing
      EXPECT_EQ(call.dtype, factors);
    }
  }
}

TEST(CudaConvolutions, RememberARefusalForAddingOrForWritingAlone) {
  Exact exact(square(5));
  cudnn_controls().status_of = [](const CudnnCall& call) {
    const bool refused = call.algorithm == (call.accumulate ? 0 : 1);
    return refused ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
  };
  for (const bool accumulate : {true, false, true, false})
    EXPECT_EQ(exact.result(ConvPass::dx, DType::f32, accumulate),
              exact.expected(ConvPass::dx, accumulate));
  ASSERT_EQ(cudnn_controls().done.size(), 4u);
  for (const CudnnCall& call : cudnn_controls().done)
    EXPECT_EQ(call.algorithm, call.accumulate ? 1 : 0);
}

TEST(CudaConvolutions, ThatVaryAreTakenOnRequestOnly) {
  const auto refuse_others = [](const CudnnCall& call) {
    return call.algorithm == 2 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
  };
  Exact varying(square(5), DType::f32, {.deterministic = false});
  cudnn_controls().status_of = refuse_others;
  EXPECT_EQ(varying.result(ConvPass::dx, DType::f32, false), varying.expected(ConvPass::dx, false));
  Exact same(square(5));
  const std::string refusal = error_of([&] { same.result(ConvPass::dx, DType::f32, true); });
  EXPECT_NE(refusal.find("f32: cuDNN has no algorithm (CUDNN_STATUS_NOT_SUPPORTED) that gives the "
                         "same bits each time"),
            std::string::npos)
      << refusal;
}

TEST(CudaConvolutions, SayThatMemoryIsLacking) {
  for (const cudnnStatus_t status : {CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
                                     CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED}) {
    Exact exact(square(5));
    const auto run = [&] { exact.result(ConvPass::forward, DType::f32, false); };
    cudnn_controls().of_create = status;
    EXPECT_THROW(run(), OutOfMemory);
    EXPECT_EQ(error_of(run).find("cudnnCreate: out of memory: CUDNN_STATUS_INTERNAL_ERROR_"), 0u);
    cudnn_controls().of_create = CUDNN_STATUS_SUCCESS;
    cudnn_controls().status_of = [status](const CudnnCall&) { return status; };
    EXPECT_THROW(run(), OutOfMemory);
    cudnn_controls().status_of = [](const CudnnCall&) { return CUDNN_STATUS_INTERNAL_ERROR; };
    EXPECT_EQ(error_of(run).find("out of memory"), std::string::npos);
    cudnn_controls().status_of = [](const CudnnCall&) { return CUDNN_STATUS_SUCCESS; };
    run();  // a failure leaves the algorithms as they were
    EXPECT_EQ(cudnn_controls().done.back().algorithm, 0);
  }
}

TEST(CudaConvolutions, MakeTheLibrarysHandleAtTheFirstUse) {
  const int before = cudnn_controls().handles;
  Exact exact(square(5));
  EXPECT_EQ(cudnn_controls().handles, before);
  for (const ConvPass pass : kPasses) exact.result(pass, DType::f32, false);
  EXPECT_EQ(cudnn_controls().handles, before + 1);
  exact.convolutions.reset();
  EXPECT_EQ(cudnn_controls().handles, before);
}

}  // namespace
}  // namespace wisp
