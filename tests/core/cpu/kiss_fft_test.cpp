#include <gtest/gtest.h>
#include <kiss_fftr.h>

#include <vector>

#include "core/real_fft.h"

namespace {

int plans = 0;

}  // namespace

// The linker puts this between the library and those who ask it for plans, by its own names.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
kiss_fftr_cfg __real_kiss_fftr_alloc(int n, int inverse, void* memory, size_t* bytes);
kiss_fftr_cfg __wrap_kiss_fftr_alloc(int n, int inverse, void* memory, size_t* bytes) {
  ++plans;
  return __real_kiss_fftr_alloc(n, inverse, memory, bytes);
}
}
// NOLINTEND(bugprone-reserved-identifier)

namespace wisp {
namespace {

TEST(KissFft, PlansEachLengthAndDirectionOnce) {
  const std::unique_ptr<RealFft> fft = make_cpu_fft();
  ASSERT_EQ(fft->numerics(), "kissfft");
  const Stream stream = Stream::immediate();
  for (int step = 0; step < 3; ++step) {
    for (const int64_t n : {60, 128}) {
      std::vector<float> x(static_cast<size_t>(n), 1.0f), spectrum(static_cast<size_t>(n) + 2);
      fft->forward(stream, n, x.data(), spectrum.data());
      fft->inverse(stream, n, spectrum.data(), x.data());
    }
    EXPECT_EQ(plans, 4) << "step " << step;
  }
}

}  // namespace
}  // namespace wisp
