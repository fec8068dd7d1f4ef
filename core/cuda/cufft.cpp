#include "core/cuda/cufft.h"

#include <cufft.h>

#include "core/base/error.h"
#include "core/base/recently_used.h"
#include "core/cuda/stream.h"
#include "core/device/device_work.h"

namespace wisp::cuda {
namespace {

/// Throws OutOfMemory or Error if `status` is a failure of the call.
void check_fft(cufftResult status, const char* call, int64_t n) {
  if (status == CUFFT_ALLOC_FAILED)
    throw OutOfMemory(concat(call, " of length ", n, ": out of memory"));
  WISP_CHECK(status == CUFFT_SUCCESS, call, " of length ", n, ": cuFFT returned ",
             static_cast<int>(status));
}

class Plan {
 public:
  Plan(int64_t n, cufftType type) : n_(n) {
    check_fft(cufftCreate(&handle_), "cufftCreate", n);
    long long length = n;
    cufftResult made = cufftSetAutoAllocation(handle_, 0);
    if (made == CUFFT_SUCCESS)
      made = cufftMakePlanMany64(handle_, 1, &length, nullptr, 1, n, nullptr, 1, n / 2 + 1, type, 1,
                                 &workspace_bytes_);
    if (made != CUFFT_SUCCESS) cufftDestroy(handle_);
    check_fft(made, "cufftMakePlanMany64", n);
  }
  ~Plan() { cufftDestroy(handle_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  cufftHandle on(const Stream& stream, Workspace& workspace) const {
    if (workspace_bytes_ > 0)
      check_fft(cufftSetWorkArea(handle_, workspace.of(static_cast<int64_t>(workspace_bytes_))),
                "cufftSetWorkArea", n_);
    check_fft(cufftSetStream(handle_, static_cast<cudaStream_t>(stream.native())), "cufftSetStream",
              n_);
    return handle_;
  }

 private:
  int64_t n_;
  cufftHandle handle_ = 0;
  size_t workspace_bytes_ = 0;
};

class CuFft final : public RealFft {
 public:
  explicit CuFft(Workspace& workspace) : workspace_(workspace) {}

  std::string numerics() const override {
    int version = 0;
    check_fft(cufftGetVersion(&version), "cufftGetVersion", 0);
    return concat("cufft ", version);
  }

  void forward(const Stream& stream, int64_t n, const float* x, float* spectrum) override {
    const cufftHandle handle = plan(n, CUFFT_R2C).on(stream, workspace_);
    check_fft(cufftExecR2C(handle, const_cast<float*>(x),  // the library has no const inputs
                           reinterpret_cast<cufftComplex*>(spectrum)),
              "cufftExecR2C", n);
    count_device_work({.calls = 1});
  }
  void inverse(const Stream& stream, int64_t n, float* spectrum, float* x) override {
    // the library leaves the effect of these numbers undefined
    clear(stream, spectrum + 1);
    if (n % 2 == 0) clear(stream, spectrum + n + 1);
    const cufftHandle handle = plan(n, CUFFT_C2R).on(stream, workspace_);
    check_fft(cufftExecC2R(handle, reinterpret_cast<cufftComplex*>(spectrum), x), "cufftExecC2R",
              n);
    count_device_work({.calls = 1});
  }

 private:
  static void clear(const Stream& stream, float* number) {
    fill_bytes(stream.native(), reinterpret_cast<std::byte*>(number), 0, sizeof *number);
  }
  const Plan& plan(int64_t n, cufftType type) {
    return *plans_.find({n, type}, [=] { return std::make_unique<Plan>(n, type); });
  }

  Workspace& workspace_;
  RecentlyUsed<std::pair<int64_t, cufftType>, std::unique_ptr<Plan>> plans_{kMostFftPlans};
};

}  // namespace

std::unique_ptr<RealFft> make_cufft(Workspace& workspace) {
  return std::make_unique<CuFft>(workspace);
}

}  // namespace wisp::cuda
