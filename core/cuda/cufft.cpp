#include "core/cuda/cufft.h"

#include <cufft.h>

#include "core/device_work.h"
#include "core/error.h"
#include "core/recently_used.h"

namespace wisp::cuda {
namespace {

void check_fft(cufftResult status, const char* call, int64_t n) {
  WISP_CHECK(status == CUFFT_SUCCESS, call, " of length ", n, ": cuFFT returned ",
             static_cast<int>(status));
}

class Plan {
 public:
  Plan(int64_t n, cufftType type) : n_(n) {
    check_fft(cufftCreate(&handle_), "cufftCreate", n);
    long long length = n;
    size_t workspace = 0;
    const cufftResult made = cufftMakePlanMany64(handle_, 1, &length, nullptr, 1, n, nullptr, 1,
                                                 n / 2 + 1, type, 1, &workspace);
    if (made != CUFFT_SUCCESS) cufftDestroy(handle_);
    check_fft(made, "cufftMakePlanMany64", n);
  }
  ~Plan() { cufftDestroy(handle_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  cufftHandle on(const Stream& stream) const {
    check_fft(cufftSetStream(handle_, static_cast<cudaStream_t>(stream.native())), "cufftSetStream",
              n_);
    return handle_;
  }

 private:
  int64_t n_;
  cufftHandle handle_ = 0;
};

class CuFft final : public RealFft {
 public:
  std::string numerics() const override {
    int version = 0;
    check_fft(cufftGetVersion(&version), "cufftGetVersion", 0);
    return concat("cufft ", version);
  }

  void forward(const Stream& stream, int64_t n, const float* x, float* spectrum) override {
    const cufftHandle handle = plan(n, CUFFT_R2C).on(stream);
    check_fft(cufftExecR2C(handle, const_cast<float*>(x),  // the library's handles know no const
                           reinterpret_cast<cufftComplex*>(spectrum)),
              "cufftExecR2C", n);
    count_device_work({.calls = 1});
  }
  void inverse(const Stream& stream, int64_t n, float* spectrum, float* x) override {
    const cufftHandle handle = plan(n, CUFFT_C2R).on(stream);
    check_fft(cufftExecC2R(handle, reinterpret_cast<cufftComplex*>(spectrum), x), "cufftExecC2R",
              n);
    count_device_work({.calls = 1});
  }

 private:
  const Plan& plan(int64_t n, cufftType type) {
    return *plans_.find({n, type}, [=] { return std::make_unique<Plan>(n, type); });
  }

  RecentlyUsed<std::pair<int64_t, cufftType>, std::unique_ptr<Plan>> plans_{kMostFftPlans};
};

}  // namespace

std::unique_ptr<RealFft> make_cufft() { return std::make_unique<CuFft>(); }

}  // namespace wisp::cuda
