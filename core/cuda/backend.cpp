// The backend of CUDA devices, also used as the tests' reference there. cuBLASLt computes products,
// cuDNN convolutions and cuFFT transforms; our own kernels do the rest. A library needs factors of
// one type, so a wide factor is rounded to bf16 if the other is bf16.
#include <cuda_runtime.h>

#include "core/cuda/check.h"
#include "core/cuda/convolutions.h"
#include "core/cuda/cublas.h"
#include "core/cuda/cufft.h"
#include "core/kernels/direct_conv.h"
#include "core/kernels/kernel_backend.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

using cuda::ConvPass;

class CudaBackend final : public KernelBackend {
 public:
  CudaBackend(MemoryPool& pool, const Stream& stream, const GpuMath& math)
      : KernelBackend(pool, stream.id()),
        device_(stream.device()),
        math_(math),
        workspace_(pool),
        convolutions_(pool, stream.id(), workspace_, math) {}

  std::string name() const override { return "cuda"; }
  std::string numerics() const override {
    cudaDeviceProp device{};
    WISP_CUDA_CHECK(cudaGetDeviceProperties(&device, device_.index));
    return concat(cuda::CublasProducts::version(), ", ", cuda::CudnnConvolutions::version(), ", ",
                  device.name, " ", device.major, ".", device.minor, ", fft ", fft_->numerics(),
                  math_.tf32 ? ", tf32" : "", math_.deterministic ? "" : ", not deterministic");
  }
  int64_t workspace_bytes() const override { return workspace_.bytes(); }
  // plans of products do not count: they are half a kilobyte each, without library objects
  int64_t kept_objects() const override { return convolutions_.kept_objects(); }

  bool reads_rounded_weights() const override { return true; }

  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            GradSlot c) override {
    products_.gemm(stream, spec, a, rounded(stream, b, a.dtype()), c);
  }
  bool gemm_bias(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
                 const Tensor& bias, const Tensor& c) override {
    const bool fits = bias.dtype() == c.dtype() && c.dtype() != DType::f64;
    return fits && products_.gemm_bias(stream, spec, a, rounded(stream, b, a.dtype()), bias, c);
  }

  void conv2d(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& w,
              Tensor& y) override {
    if (x.dtype() == DType::f64) return direct_conv2d(stream, spec, x, w, y);
    convolutions_.run(stream, ConvPass::forward, spec, x, rounded(stream, w, x.dtype()),
                      {y, false});
  }

  void conv2d_dx(const Stream& stream, const ConvSpec& spec, const Tensor& dy, const Tensor& w,
                 GradSlot dx) override {
    if (dy.dtype() == DType::f64) return direct_conv2d_dx(stream, spec, dy, w, dx);
    convolutions_.run(stream, ConvPass::dx, spec, dy, rounded(stream, w, dy.dtype()), dx);
  }

  void conv2d_dw(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& dy,
                 GradSlot dw) override {
    if (x.dtype() == DType::f64) return direct_conv2d_dw(stream, spec, x, dy, dw);
    convolutions_.run(stream, ConvPass::dw, spec, x, dy, dw);
  }

  RealFft& fft() override { return *fft_; }

 private:
  /// `x` in `type`, the type of the other factor.
  Tensor rounded(const Stream& stream, const Tensor& x, DType type) const {
    if (x.dtype() == type) return x;
    const Tensor copy = temporary(x.shape(), type);
    deposit(stream, x, {copy, false});
    return copy;
  }

  const Device device_;
  const GpuMath math_;
  cuda::Workspace workspace_;
  cuda::CublasProducts products_{workspace_, math_.tf32};
  cuda::Convolutions convolutions_;
  std::unique_ptr<RealFft> fft_ = cuda::make_cufft(workspace_);
};

}  // namespace

std::unique_ptr<Backend> make_device_backend(MemoryPool& pool, const Stream& stream, bool,
                                             const GpuMath& math) {
  use(stream.device());  // for the handle of cuBLASLt
  return std::make_unique<CudaBackend>(pool, stream, math);
}

std::string missing_for_cuda() { return cuda::missing_cudnn_part(); }

}  // namespace wisp
