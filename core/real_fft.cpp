#include "core/real_fft.h"

#include <limits>

#include "core/base/recently_used.h"
#include "core/cpu/reference_fft.h"

namespace wisp {
namespace {

class PlainFft final : public RealFft {
 public:
  std::string numerics() const override { return "reference"; }

  void forward(const Stream& stream, int64_t n, const float* x, float* spectrum) override {
    stream.submit([=, this] { plan(n).forward(x, spectrum); });
  }
  void inverse(const Stream& stream, int64_t n, float* spectrum, float* x) override {
    stream.submit([=, this] { plan(n).inverse(spectrum, x); });
  }

 private:
  ReferenceFft<float>& plan(int64_t n) {
    return plans_.find(n, [n] { return ReferenceFft<float>(n); });
  }

  RecentlyUsed<int64_t, ReferenceFft<float>> plans_{kMostFftPlans};
};

}  // namespace

int64_t fast_fft_size(int64_t n) {
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int64_t fives = 1;; fives *= 5) {
    for (int64_t odd = fives;; odd *= 3) {
      int64_t size = 2 * odd;
      while (size < n) size *= 2;
      if (size < best) best = size;
      if (2 * odd >= n) break;
    }
    if (2 * fives >= n) return best;
  }
}

std::unique_ptr<RealFft> make_reference_fft() { return std::make_unique<PlainFft>(); }

}  // namespace wisp
