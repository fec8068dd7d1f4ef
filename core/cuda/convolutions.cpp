#include "core/cuda/convolutions.h"

#include <cudnn.h>
#include <dlfcn.h>

#include <algorithm>
#include <cassert>
#include <climits>
#include <span>
#include <type_traits>
#include <vector>

#include "core/cuda/device.h"
#include "core/device/device_remarks.h"
#include "core/device/device_work.h"
#include "core/kernels/direct_conv.h"
#include "core/ops/gradient.h"

namespace wisp::cuda {
namespace {

constexpr int64_t kPreferredWorkspaceBytes = int64_t{1} << 30;  // limit if there is a choice
constexpr int kMostAlgorithms = 16;  // the library has at most 8 per pass, some in two variants

std::string described(ConvPass pass, const ConvSpec& s, DType dtype) {
  return concat(wisp::described(pass, s), ", stride ", s.stride, ", pad ", s.pad, ", dilation ",
                s.dilation, ", ", name_of(dtype), ": ");
}

/// Throws OutOfMemory or Error if `status` is a failure of the call.
void check_cudnn(cudnnStatus_t status, const std::string& call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const char* const failure = cudnnGetErrorString(status);
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
    throw OutOfMemory(concat(call, ": out of memory: ", failure));
  throw Error(concat(call, ": ", failure));
}

/// A handle or descriptor of the library that its owner destroys.
template <class Thing>
using Owned = std::unique_ptr<std::remove_pointer_t<Thing>, cudnnStatus_t (*)(Thing)>;

}  // namespace

/// A convolution of one shape for the library, and the algorithms that its heuristic ranks.
class Convolutions::Plan {
 public:
  Plan(cudnnHandle_t handle, const Key& key, bool deterministic)
      : key_(key),
        deterministic_(deterministic),
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
    rank(handle);
  }

  /// Returns whether the convolution was done. If a call refuses a ranked algorithm, the next one
  /// is tried and remembered. Returns false if none is left; then nothing was done. A refusal to
  /// add to the result says nothing about writing it, and the other way round.
  bool run(cudnnHandle_t handle, const Tensor& first, const Tensor& second, const GradSlot& result,
           Workspace& workspace) {
    std::vector<Algorithm>& left = result.accumulate ? to_add_ : to_write_;
    for (; !left.empty(); left.erase(left.begin())) {
      const cudnnStatus_t status = call(handle, left.front(), first, second, result, workspace);
      if (status == CUDNN_STATUS_SUCCESS) return true;
      refused(status);
    }
    return false;
  }
  /// The shapes, and the reason of the last refusal.
  std::string refusal() const {
    return concat(described(key_.pass, key_.spec, key_.dtype), "cuDNN has no algorithm (", refusal_,
                  ")",
                  deterministic_ ? " that gives the same bits each time; train.deterministic = "
                                   "false lets it take others"
                                 : "");
  }

 private:
  struct Algorithm {
    int number;  // index in the pass's enumeration
    int64_t workspace_bytes;
    cudnnMathType_t math;
  };

  void check(cudnnStatus_t status, const char* call) const {
    if (status != CUDNN_STATUS_SUCCESS)
      check_cudnn(status, described(key_.pass, key_.spec, key_.dtype) + call);
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
             : key_.tf32               ? CUDNN_DEFAULT_MATH
                                       : CUDNN_FMA_MATH);
  }

  cudnnStatus_t call(cudnnHandle_t handle, const Algorithm& algorithm, const Tensor& first,
                     const Tensor& second, const GradSlot& result, Workspace& workspace) const {
    // without TF32, f32 keeps its math type
    if (key_.dtype == DType::bf16 || key_.tf32) set_math(algorithm.math);
    const float alpha = 1.0f, beta = result.accumulate ? 1.0f : 0.0f;
    void* const room = workspace.of(algorithm.workspace_bytes);
    const auto bytes = static_cast<size_t>(algorithm.workspace_bytes);
    switch (key_.pass) {
      case ConvPass::forward:
        return cudnnConvolutionForward(handle, &alpha, x_.get(), first.raw(), w_.get(),
                                       second.raw(), convolution_.get(),
                                       static_cast<cudnnConvolutionFwdAlgo_t>(algorithm.number),
                                       room, bytes, &beta, y_.get(), result.into.raw());
      case ConvPass::dx:
        return cudnnConvolutionBackwardData(
            handle, &alpha, w_.get(), second.raw(), y_.get(), first.raw(), convolution_.get(),
            static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm.number), room, bytes, &beta,
            x_.get(), result.into.raw());
      case ConvPass::dw:
        return cudnnConvolutionBackwardFilter(
            handle, &alpha, x_.get(), first.raw(), y_.get(), second.raw(), convolution_.get(),
            static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm.number), room, bytes, &beta,
            w_.get(), result.into.raw());
    }
    return CUDNN_STATUS_BAD_PARAM;
  }

  void set_math(cudnnMathType_t math) const {
    check(cudnnSetConvolutionMathType(convolution_.get(), math), "cudnnSetConvolutionMathType");
  }

  void rank(cudnnHandle_t handle) {
    switch (key_.pass) {
      case ConvPass::forward:
        return keep<cudnnConvolutionFwdAlgoPerf_t>([&](int* count, auto* ranked) {
          return cudnnGetConvolutionForwardAlgorithm_v7(handle, x_.get(), w_.get(),
                                                        convolution_.get(), y_.get(),
                                                        kMostAlgorithms, count, ranked);
        });
      case ConvPass::dx:
        return keep<cudnnConvolutionBwdDataAlgoPerf_t>([&](int* count, auto* ranked) {
          return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w_.get(), y_.get(),
                                                             convolution_.get(), x_.get(),
                                                             kMostAlgorithms, count, ranked);
        });
      case ConvPass::dw:
        return keep<cudnnConvolutionBwdFilterAlgoPerf_t>([&](int* count, auto* ranked) {
          return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x_.get(), y_.get(),
                                                               convolution_.get(), w_.get(),
                                                               kMostAlgorithms, count, ranked);
        });
    }
  }

  /// Keeps the algorithms that rank(count, ranked) lists by expected time. It drops those whose
  /// bits may vary, if the options ask for that, and moves those with a large workspace to the end.
  template <class Ranked, class Rank>
  void keep(const Rank& rank) {
    Ranked ranked[kMostAlgorithms];
    int count = 0;
    if (const cudnnStatus_t status = rank(&count, ranked); status != CUDNN_STATUS_SUCCESS)
      return refused(status);
    for (const Ranked& one : std::span(ranked, static_cast<size_t>(count))) {
      if (one.status != CUDNN_STATUS_SUCCESS) continue;
      if (deterministic_ && one.determinism != CUDNN_DETERMINISTIC) continue;
      to_write_.push_back({one.algo, static_cast<int64_t>(one.memory), one.mathType});
    }
    std::stable_sort(to_write_.begin(), to_write_.end(),
                     [](const Algorithm& a, const Algorithm& b) {
                       return std::max(a.workspace_bytes, kPreferredWorkspaceBytes) <
                              std::max(b.workspace_bytes, kPreferredWorkspaceBytes);
                     });
    to_add_ = to_write_;
  }

  /// Remembers the reason of a refusal. Throws Error if other algorithms would be refused, too.
  void refused(cudnnStatus_t status) {
    const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
    if (category != CUDNN_STATUS_NOT_SUPPORTED && category != CUDNN_STATUS_EXECUTION_FAILED)
      check(status, name_of(key_.pass));
    refusal_ = cudnnGetErrorString(status);
  }

  const Key key_;
  const bool deterministic_;
  const Owned<cudnnTensorDescriptor_t> x_, y_;
  const Owned<cudnnFilterDescriptor_t> w_;
  const Owned<cudnnConvolutionDescriptor_t> convolution_;
  std::vector<Algorithm> to_write_, to_add_;  // the first one is used
  const char* refusal_ = "none fits";
};

Convolutions::Convolutions(MemoryPool& pool, Workspace& workspace, const GpuMath& math)
    : pool_(pool),
      workspace_(workspace),
      math_(math),
      handle_(nullptr, [](cudnnContext* handle) { cudnnDestroy(handle); }),
      plans_(kMostKeptObjects) {}

Convolutions::~Convolutions() = default;

void Convolutions::convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec,
                            const Tensor& first, const Tensor& second, const GradSlot& result) {
  assert(pass != ConvPass::forward || !result.accumulate);
  const DType type = first.dtype();
  if (type == DType::f64) return direct_convolve(stream, pass, spec, first, second, result);
  const Tensor factor = in_type(type, second, stream, pool_);
  if (run_as_is(stream, pass, spec, math_.tf32, first, factor, result)) return;
  WISP_CHECK(type == DType::bf16, refusal_);
  remark(refusal_ + "; it runs in f32, which is several times slower");
  count_device_work({.fallbacks = 1});
  const bool tf32 = true;  // exact, because a factor in bf16 has fewer bits than one in TF32
  const bool done = run_as_is(stream, pass, spec, tf32, in_type(DType::f32, first, stream, pool_),
                              in_type(DType::f32, factor, stream, pool_), result);
  WISP_CHECK(done, refusal_);
}

/// Runs in the type of the factors. Where the result has another type, or cuDNN cannot add to it,
/// the convolution goes to a temporary. Returns false if cuDNN lacks it; then nothing was done.
bool Convolutions::run_as_is(const Stream& stream, ConvPass pass, const ConvSpec& spec, bool tf32,
                             const Tensor& first, const Tensor& second, const GradSlot& result) {
  // cuDNN's classic interface gives results in the factors' type; its graphs could give f32
  if (result.into.dtype() == first.dtype()) {
    if (run_by_cudnn(stream, pass, spec, tf32, first, second, result)) return true;
    if (!result.accumulate) return false;
  }
  const Tensor sums(result.into.shape(), first.dtype(), pool_, stream.id());
  if (!run_by_cudnn(stream, pass, spec, tf32, first, second, {sums, false})) return false;
  deposit(stream, sums, result);
  return true;
}

/// The library's handle on the stream. It is made at the first use, because it costs time and
/// memory, and many backends never convolve.
cudnnContext* Convolutions::handle(const Stream& stream) {
  if (!handle_) {
    use(stream.device());
    cudnnHandle_t made = nullptr;
    check_cudnn(cudnnCreate(&made), "cudnnCreate");
    handle_.reset(made);
  }
  check_cudnn(cudnnSetStream(handle_.get(), static_cast<cudaStream_t>(stream.native())),
              "cudnnSetStream");
  return handle_.get();
}

/// Runs in the type of all three tensors, with sums in f32; cuDNN has no f64 with channels last.
/// With `tf32`, f32 factors are rounded to TF32. If cuDNN has no suitable algorithm, nothing is
/// done, the result is false, and refusal_ has the reason. Throws OutOfMemory if the library lacks
/// memory, Error with the shapes if it fails otherwise.
bool Convolutions::run_by_cudnn(const Stream& stream, ConvPass pass, const ConvSpec& spec,
                                bool tf32, const Tensor& first, const Tensor& second,
                                const GradSlot& result) {
  const Key key{pass, spec, first.dtype(), tf32 && first.dtype() == DType::f32};
  cudnnContext* const handle = this->handle(stream);
  Plan& plan =
      *plans_.find(key, [&] { return std::make_unique<Plan>(handle, key, math_.deterministic); });
  const bool done = plan.run(handle, first, second, result, workspace_);
  if (done) {
    count_device_work({.calls = 1});
  } else {
    refusal_ = plan.refusal();
  }
  return done;
}

std::string Convolutions::version() { return concat("cudnn ", cudnnGetVersion()); }

std::string missing_cudnn_part() {
  Dl_info cudnn{};
  std::string folder;  // the parts are next to it
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
