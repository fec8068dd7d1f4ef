#include "core/emulated/cudnn.h"

#include <memory>

#include "core/backend.h"
#include "core/convolutions.h"
#include "core/emulated/memory.h"
#include "core/emulated/runtime.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
  wisp::DType dtype = wisp::DType::f32;
  int64_t n = 0, h = 0, w = 0, c = 0;
};
struct cudnnFilterStruct {
  wisp::DType dtype = wisp::DType::f32;
  int64_t k = 0, h = 0, w = 0, c = 0;
};
struct cudnnConvolutionStruct {
  wisp::Axes pad = 0, stride = 1, dilation = 1;
  int groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

namespace wisp::emulated {
namespace {

constexpr size_t kWorkspaceBytes = 1000;  // of each algorithm
constexpr size_t kWorkspaceAlignment = 256;

DType dtype_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_BFLOAT16 ? DType::bf16 : DType::f32;
}

/// The tensor for a task at a device's address.
Tensor here(const void* data, DType dtype, Shape shape) {
  const auto bytes = static_cast<size_t>(shape.numel() * size_of(dtype));
  std::byte* alias = Memory::get().alias(data, bytes);
  WISP_CHECK(alias, "the stand-in for cuDNN was given memory of the host's");
  return {shape, dtype, std::shared_ptr<std::byte>(alias, [](std::byte*) {})};
}

Tensor here(const void* data, const cudnnTensorStruct& images) {
  return here(data, images.dtype, {images.n, images.h, images.w, images.c});
}

Tensor here(const void* data, const cudnnFilterStruct& filter) {
  return here(data, filter.dtype, {filter.k, filter.h, filter.w, filter.c});
}

ConvSpec spec_of(const cudnnTensorStruct& x, const cudnnFilterStruct& w,
                 const cudnnConvolutionStruct& convolution) {
  return {.batch = x.n,
          .height = x.h,
          .width = x.w,
          .in_channels = x.c,
          .out_channels = w.k,
          .kernel = {w.h, w.w},
          .stride = convolution.stride,
          .pad = convolution.pad,
          .dilation = convolution.dilation,
          .groups = convolution.groups};
}

template <class Ranked>
cudnnStatus_t rank(const cudnnConvolutionStruct& convolution, int asked, int* count,
                   Ranked* ranked) {
  constexpr int kAlgorithms = 3;
  if (asked < kAlgorithms) return CUDNN_STATUS_BAD_PARAM;
  *count = kAlgorithms;
  for (int i = 0; i < kAlgorithms; ++i) {
    ranked[i] = {.algo = static_cast<decltype(ranked->algo)>(i),
                 .status = CUDNN_STATUS_SUCCESS,
                 .time = static_cast<float>(i),
                 .memory = kWorkspaceBytes,
                 .determinism = i < 2 ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC,
                 .mathType = convolution.math};
  }
  return CUDNN_STATUS_SUCCESS;
}

/// Makes the pass the stream's next task, unless the test refuses.
cudnnStatus_t run(const cudnnContext& handle, int algorithm, cudnnMathType_t math, ConvPass pass,
                  const ConvSpec& spec, const Tensor& first, const Tensor& second,
                  const Tensor& result, const void* workspace, size_t workspace_bytes,
                  const void* beta) {
  CudnnControls& controls = cudnn_controls();
  const bool accumulate = *static_cast<const float*>(beta) != 0.0f;
  const CudnnCall call{algorithm, first.dtype(), accumulate, math};
  const auto address = reinterpret_cast<uintptr_t>(workspace);
  if (!workspace || address % kWorkspaceAlignment != 0 || workspace_bytes < kWorkspaceBytes)
    return CUDNN_STATUS_BAD_PARAM;
  if (const cudnnStatus_t status = controls.status_of(call); status != CUDNN_STATUS_SUCCESS)
    return status;
  controls.done.push_back(call);
  enqueue(handle.stream, [=] {
    MemoryPool pool;
    const Stream now = Stream::immediate();
    make_reference_backend(pool, now)->convolutions().convolve(now, pass, spec, first, second,
                                                               {result, accumulate});
  });
  return CUDNN_STATUS_SUCCESS;
}

template <class Descriptor>
cudnnStatus_t make(Descriptor** made) {
  *made = new Descriptor;
  return CUDNN_STATUS_SUCCESS;
}

template <class Descriptor>
cudnnStatus_t destroy(Descriptor* made) {
  delete made;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

CudnnControls& cudnn_controls() {
  static CudnnControls controls;
  return controls;
}

}  // namespace wisp::emulated

using namespace wisp::emulated;  // the functions below are cuDNN's

size_t cudnnGetVersion() { return 90000; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "unknown status";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  CudnnControls& controls = cudnn_controls();
  if (controls.of_create != CUDNN_STATUS_SUCCESS) return controls.of_create;
  ++controls.handles;
  return make(handle);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  --cudnn_controls().handles;
  return destroy(handle);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* images) { return make(images); }

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t images) {
  return destroy(images);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t images, cudnnTensorFormat_t,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  *images = {.dtype = dtype_of(type), .n = n, .h = h, .w = w, .c = c};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) { return make(filter); }

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  return destroy(filter);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t, int k, int c, int h, int w) {
  *filter = {.dtype = dtype_of(type), .k = k, .h = h, .w = w, .c = c};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  return make(convolution);
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return destroy(convolution);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h,
                                              int pad_w, int stride_h, int stride_w, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t,
                                              cudnnDataType_t) {
  convolution->pad = {pad_h, pad_w};
  convolution->stride = {stride_h, stride_w};
  convolution->dilation = {dilation_h, dilation_w};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups) {
  convolution->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution,
                                          cudnnMathType_t math) {
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                     cudnnFilterDescriptor_t,
                                                     cudnnConvolutionDescriptor_t convolution,
                                                     cudnnTensorDescriptor_t, int asked, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* ranked) {
  return rank(*convolution, asked, count, ranked);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
    cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t, int asked, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* ranked) {
  return rank(*convolution, asked, count, ranked);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t, int asked, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* ranked) {
  return rank(*convolution, asked, count, ranked);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void*,
                                      cudnnTensorDescriptor_t of_x, const void* x,
                                      cudnnFilterDescriptor_t of_w, const void* w,
                                      cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      size_t workspace_bytes, const void* beta,
                                      cudnnTensorDescriptor_t of_y, void* y) {
  return run(*handle, algorithm, convolution->math, wisp::ConvPass::forward,
             spec_of(*of_x, *of_w, *convolution), here(x, *of_x), here(w, *of_w), here(y, *of_y),
             workspace, workspace_bytes, beta);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void*,
                                           cudnnFilterDescriptor_t of_w, const void* w,
                                           cudnnTensorDescriptor_t of_dy, const void* dy,
                                           cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t workspace_bytes, const void* beta,
                                           cudnnTensorDescriptor_t of_dx, void* dx) {
  return run(*handle, algorithm, convolution->math, wisp::ConvPass::dx,
             spec_of(*of_dx, *of_w, *convolution), here(dy, *of_dy), here(w, *of_w),
             here(dx, *of_dx), workspace, workspace_bytes, beta);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t of_x, const void* x,
    cudnnTensorDescriptor_t of_dy, const void* dy, cudnnConvolutionDescriptor_t convolution,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t workspace_bytes,
    const void* beta, cudnnFilterDescriptor_t of_dw, void* dw) {
  return run(*handle, algorithm, convolution->math, wisp::ConvPass::dw,
             spec_of(*of_x, *of_dw, *convolution), here(x, *of_x), here(dy, *of_dy),
             here(dw, *of_dw), workspace, workspace_bytes, beta);
}
