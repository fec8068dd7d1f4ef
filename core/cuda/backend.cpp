// The backend of CUDA devices, also used as the tests' reference there. cuBLASLt computes products,
// cuDNN convolutions and cuFFT transforms; our own kernels do the rest.
#include <cuda_runtime.h>

#include "core/cuda/check.h"
#include "core/cuda/convolutions.h"
#include "core/cuda/cublas.h"
#include "core/cuda/cufft.h"
#include "core/kernels/batch_norm.h"
#include "core/kernels/pool.h"
#include "core/kernels/rnn.h"

namespace wisp {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(MemoryPool& pool, const Stream& stream, const GpuMath& math)
      : device_(stream.device()),
        math_(math),
        workspace_(pool),
        products_(pool, workspace_, math.tf32),
        convolutions_(pool, workspace_, math),
        norms_(pool),
        recurrent_(products_, pool) {}

  std::string name() const override { return "cuda"; }
  std::string numerics() const override {
    cudaDeviceProp device{};
    WISP_CUDA_CHECK(cudaGetDeviceProperties(&device, device_.index));
    return concat(cuda::CublasProducts::version(), ", ", cuda::Convolutions::version(), ", ",
                  device.name, " ", device.major, ".", device.minor, ", fft ", fft_->numerics(),
                  math_.tf32 ? ", tf32" : "", math_.deterministic ? "" : ", not deterministic");
  }
  int64_t workspace_bytes() const override { return workspace_.bytes(); }
  // plans of products do not count: they are half a kilobyte each, without library objects
  int64_t kept_objects() const override { return convolutions_.kept_objects(); }
  bool reads_rounded_weights() const override { return true; }

  Products& products() override { return products_; }
  Convolutions& convolutions() override { return convolutions_; }
  Pools& pools() override { return pools_; }
  Norms& norms() override { return norms_; }
  RecurrentLayers& recurrent() override { return recurrent_; }
  RealFft& fft() override { return *fft_; }

 private:
  const Device device_;
  const GpuMath math_;
  Workspace workspace_;
  cuda::CublasProducts products_;
  cuda::Convolutions convolutions_;
  KernelPools pools_;
  KernelNorms norms_;
  KernelRecurrentLayers recurrent_;
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
