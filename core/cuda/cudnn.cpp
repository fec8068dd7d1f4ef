#include "core/cuda/cudnn.h"

#include <cudnn.h>
#include <dlfcn.h>

#include <climits>
#include <span>
#include <type_traits>

#include "core/device_work.h"

namespace wisp::cuda {
namespace {

constexpr int64_t kMostWorkspaceBytes = int64_t{1} << 30;
constexpr int kMostAlgorithms = 16;  // the library has 8 for a pass at most, some in two ways

const char* name_of(ConvPass pass) {
  if (pass == ConvPass::forward) return "conv2d";
  return pass == ConvPass::dx ? "conv2d_dx" : "conv2d_dw";
}

std::string described(ConvPass pass, const ConvSpec& s, DType dtype) {
  return concat(name_of(pass), ": images (", s.batch, ", ", s.height, ", ", s.width, ", ",
                s.in_channels, "), weight (", s.out_channels, ", ", s.kernel.h, ", ", s.kernel.w,
                ", ", s.in_channels / s.groups, "), stride ", s.stride, ", pad ", s.pad,
                ", dilation ", s.dilation, ", ", wisp::name_of(dtype), ": ");
}

/// A handle or descriptor of the library's, given back at the end.
template <class Thing>
using Owned = std::unique_ptr<std::remove_pointer_t<Thing>, cudnnStatus_t (*)(Thing)>;

}  // namespace

/// A convolution of one shape as the library knows it, and the algorithm that its heuristics
/// choose.
class CudnnConvolutions::Plan {
 public:
  Plan(cudnnHandle_t handle, const Key& key, const GpuMath& math)
      : key_(key),
        math_(math),
        x_(made(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor)),
        y_(made(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor)),
        w_(made(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor)),
        convolution_(made(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor)) {
    const ConvSpec& s = key_.spec;
    set_images(x_.get(), s.height, s.width, s.in_channels);
    set_images(y_.get(), s.out_height(), s.out_width(), s.out_channels);
    check(cudnnSetFilter4dDescriptor(w_.get(), type(), CUDNN_TENSOR_NHWC, narrow(s.out_channels),
                                     narrow(s.in_channels / s.groups), narrow(s.kernel.h),
                                     narrow(s.kernel.w)),
          "cudnnSetFilter4dDescriptor");
    set_convolution();
    choose(handle);
  }

  int64_t workspace_bytes() const { return workspace_bytes_; }

  void run(cudnnHandle_t handle, const Tensor& first, const Tensor& second, const GradSlot& result,
           void* workspace) const {
    const float alpha = 1.0f, beta = result.accumulate ? 1.0f : 0.0f;
    const auto bytes = static_cast<size_t>(workspace_bytes_);
    switch (key_.pass) {
      case ConvPass::forward:
        return check(cudnnConvolutionForward(handle, &alpha, x_.get(), first.raw(), w_.get(),
                                             second.raw(), convolution_.get(),
                                             static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_),
                                             workspace, bytes, &beta, y_.get(), result.into.raw()),
                     "cudnnConvolutionForward");
      case ConvPass::dx:
        return check(cudnnConvolutionBackwardData(
                         handle, &alpha, w_.get(), second.raw(), y_.get(), first.raw(),
                         convolution_.get(), static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm_),
                         workspace, bytes, &beta, x_.get(), result.into.raw()),
                     "cudnnConvolutionBackwardData");
      case ConvPass::dw:
        return check(
            cudnnConvolutionBackwardFilter(handle, &alpha, x_.get(), first.raw(), y_.get(),
                                           second.raw(), convolution_.get(),
                                           static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm_),
                                           workspace, bytes, &beta, w_.get(), result.into.raw()),
            "cudnnConvolutionBackwardFilter");
    }
  }

 private:
  void check(cudnnStatus_t status, const char* call) const {
    WISP_CHECK(status == CUDNN_STATUS_SUCCESS, described(key_.pass, key_.spec, key_.dtype), call,
               ": ", cudnnGetErrorString(status));
  }

  template <class Thing>
  Owned<Thing> made(cudnnStatus_t (*create)(Thing*), cudnnStatus_t (*destroy)(Thing)) const {
    Thing thing = nullptr;
    check(create(&thing), "making a descriptor");
    return {thing, destroy};
  }

  int narrow(int64_t value) const {
    WISP_CHECK(value <= INT_MAX, described(key_.pass, key_.spec, key_.dtype), value,
               " is more than cuDNN's descriptors hold");
    return static_cast<int>(value);
  }

  cudnnDataType_t type() const {
    return key_.dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  }

  void set_images(cudnnTensorDescriptor_t images, int64_t height, int64_t width,
                  int64_t channels) const {
    check(cudnnSetTensor4dDescriptor(images, CUDNN_TENSOR_NHWC, type(), narrow(key_.spec.batch),
                                     narrow(channels), narrow(height), narrow(width)),
          "cudnnSetTensor4dDescriptor");
  }

  void set_convolution() const {
    const ConvSpec& s = key_.spec;
    check(cudnnSetConvolution2dDescriptor(convolution_.get(), narrow(s.pad.h), narrow(s.pad.w),
                                          narrow(s.stride.h), narrow(s.stride.w),
                                          narrow(s.dilation.h), narrow(s.dilation.w),
                                          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "cudnnSetConvolution2dDescriptor");
    check(cudnnSetConvolutionGroupCount(convolution_.get(), narrow(s.groups)),
          "cudnnSetConvolutionGroupCount");
    set_math(key_.dtype == DType::bf16 ? CUDNN_TENSOR_OP_MATH
             : math_.tf32              ? CUDNN_DEFAULT_MATH
                                       : CUDNN_FMA_MATH);
  }

  void set_math(cudnnMathType_t math) const {
    check(cudnnSetConvolutionMathType(convolution_.get(), math), "cudnnSetConvolutionMathType");
  }

  void choose(cudnnHandle_t handle) {
    switch (key_.pass) {
      case ConvPass::forward:
        return choose_of<cudnnConvolutionFwdAlgoPerf_t>([&](int* count, auto* ranked) {
          check(
              cudnnGetConvolutionForwardAlgorithm_v7(handle, x_.get(), w_.get(), convolution_.get(),
                                                     y_.get(), kMostAlgorithms, count, ranked),
              "cudnnGetConvolutionForwardAlgorithm_v7");
        });
      case ConvPass::dx:
        return choose_of<cudnnConvolutionBwdDataAlgoPerf_t>([&](int* count, auto* ranked) {
          check(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w_.get(), y_.get(),
                                                            convolution_.get(), x_.get(),
                                                            kMostAlgorithms, count, ranked),
                "cudnnGetConvolutionBackwardDataAlgorithm_v7");
        });
      case ConvPass::dw:
        return choose_of<cudnnConvolutionBwdFilterAlgoPerf_t>([&](int* count, auto* ranked) {
          check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x_.get(), y_.get(),
                                                              convolution_.get(), w_.get(),
                                                              kMostAlgorithms, count, ranked),
                "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
        });
    }
  }

  /// Takes the first that gives the same bits each time and fits, of what rank(count, ranked) lists
  /// by expected time.
  template <class Ranked, class Rank>
  void choose_of(const Rank& rank) {
    Ranked ranked[kMostAlgorithms];
    int count = 0;
    rank(&count, ranked);
    for (const Ranked& one : std::span(ranked, static_cast<size_t>(count))) {
      if (one.status != CUDNN_STATUS_SUCCESS || one.memory > size_t{kMostWorkspaceBytes}) continue;
      if (math_.deterministic && one.determinism != CUDNN_DETERMINISTIC) continue;
      algorithm_ = one.algo;
      workspace_bytes_ = static_cast<int64_t>(one.memory);
      // without TF32 f32 stays as asked for
      if (key_.dtype == DType::bf16 || math_.tf32) set_math(one.mathType);
      return;
    }
    throw Error(concat(
        described(key_.pass, key_.spec, key_.dtype), "of ", count, " algorithms cuDNN has none ",
        math_.deterministic ? "that gives the same bits each time " : "", "in ",
        kMostWorkspaceBytes, " bytes",
        math_.deterministic ? "; train.deterministic = false lets it take others" : ""));
  }

  const Key key_;
  const GpuMath math_;
  const Owned<cudnnTensorDescriptor_t> x_, y_;
  const Owned<cudnnFilterDescriptor_t> w_;
  const Owned<cudnnConvolutionDescriptor_t> convolution_;
  int algorithm_ = 0;  // of the pass
  int64_t workspace_bytes_ = 0;
};

namespace {

cudnnHandle_t make_handle() {
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = cudnnCreate(&handle);
  WISP_CHECK(status == CUDNN_STATUS_SUCCESS, "cudnnCreate: ", cudnnGetErrorString(status));
  return handle;
}

}  // namespace

CudnnConvolutions::CudnnConvolutions(Workspace& workspace, const GpuMath& math)
    : workspace_(workspace),
      math_(math),
      handle_(make_handle(), [](cudnnContext* handle) { cudnnDestroy(handle); }),
      plans_(kMostKeptObjects) {}

CudnnConvolutions::~CudnnConvolutions() = default;

void CudnnConvolutions::run(const Stream& stream, ConvPass pass, const ConvSpec& spec,
                            const Tensor& first, const Tensor& second, const GradSlot& result) {
  const Key key{pass, spec, first.dtype()};
  const Plan& plan =
      *plans_.find(key, [&] { return std::make_unique<Plan>(handle_.get(), key, math_); });
  const cudnnStatus_t status =
      cudnnSetStream(handle_.get(), static_cast<cudaStream_t>(stream.native()));
  WISP_CHECK(status == CUDNN_STATUS_SUCCESS, "cudnnSetStream: ", cudnnGetErrorString(status));
  plan.run(handle_.get(), first, second, result, workspace_.of(plan.workspace_bytes()));
  count_device_work({.calls = 1});
}

std::string CudnnConvolutions::version() { return concat("cudnn ", cudnnGetVersion()); }

std::string missing_cudnn_part() {
  Dl_info cudnn{};
  std::string folder;  // the parts lie beside it
  if (dladdr(reinterpret_cast<void*>(&cudnnCreate), &cudnn) != 0) folder = cudnn.dli_fname;
  folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/') + 1);
  for (const char* part :
       {"graph", "ops", "cnn", "engines_precompiled", "engines_runtime_compiled", "heuristic"}) {
    const std::string name = concat("libcudnn_", part, ".so.", CUDNN_MAJOR);
    if (dlopen((folder + name).c_str(), RTLD_LAZY)) continue;
    const std::string failure = dlerror();
    if (!dlopen(name.c_str(), RTLD_LAZY)) return concat("a part of cuDNN: ", failure);
  }
  return {};
}

}  // namespace wisp::cuda
