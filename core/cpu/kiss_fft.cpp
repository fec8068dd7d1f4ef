// Real transforms by kissfft, which uses one thread. It takes even lengths that fit an int; the
// reference computes other lengths.
#include <kiss_fftr.h>

#include <limits>

#include "core/base/error.h"
#include "core/base/recently_used.h"
#include "core/real_fft.h"

namespace wisp {
namespace {

struct Free {
  void operator()(kiss_fftr_cfg plan) const { kiss_fftr_free(plan); }
};

class KissFft final : public RealFft {
 public:
  std::string numerics() const override { return "kissfft"; }

  void forward(const Stream& stream, int64_t n, const float* x, float* spectrum) override {
    if (!knows(n)) return reference_->forward(stream, n, x, spectrum);
    stream.submit(
        [=, this] { kiss_fftr(plan(n, 0), x, reinterpret_cast<kiss_fft_cpx*>(spectrum)); });
  }
  void inverse(const Stream& stream, int64_t n, float* spectrum, float* x) override {
    if (!knows(n)) return reference_->inverse(stream, n, spectrum, x);
    stream.submit(
        [=, this] { kiss_fftri(plan(n, 1), reinterpret_cast<kiss_fft_cpx*>(spectrum), x); });
  }

 private:
  using Plan = std::unique_ptr<std::remove_pointer_t<kiss_fftr_cfg>, Free>;

  static bool knows(int64_t n) { return n % 2 == 0 && n <= std::numeric_limits<int>::max(); }

  /// The plan for n. `direction` 1 is the inverse.
  kiss_fftr_cfg plan(int64_t n, int direction) {
    const Plan& kept = plans_.find({n, direction}, [=] {
      Plan made(kiss_fftr_alloc(static_cast<int>(n), direction, nullptr, nullptr));
      WISP_CHECK(made, "fft: kissfft has no memory for a plan of length ", n);
      return made;
    });
    return kept.get();
  }

  std::unique_ptr<RealFft> reference_ = make_reference_fft();
  RecentlyUsed<std::pair<int64_t, int>, Plan> plans_{kMostFftPlans};
};

}  // namespace

std::unique_ptr<RealFft> make_cpu_fft() { return std::make_unique<KissFft>(); }

}  // namespace wisp
