#include <gtest/gtest.h>
#include <kiss_fftr.h>

#include <vector>

#include "core/real_fft.h"

namespace {

int plans = 0;

}  // namespace

// The linker option --wrap redirects calls of kiss_fftr_alloc here. It prescribes both names.
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

/// Transforms forward and back.
std::vector<float> there_and_back(RealFft& fft, int64_t n) {
  std::vector<float> x(static_cast<size_t>(n), 0.0f), spectrum(static_cast<size_t>(n) + 2);
  for (int64_t i = 0; i < n; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i % 7);
  const Stream stream = Stream::immediate();
  fft.forward(stream, n, x.data(), spectrum.data());
  fft.inverse(stream, n, spectrum.data(), x.data());
  return x;
}

TEST(KissFft, PlansEachLengthAndDirectionOnce) {
  const std::unique_ptr<RealFft> fft = make_cpu_fft();
  ASSERT_EQ(fft->numerics(), "kissfft");
  const int before = plans;
  for (int step = 0; step < 3; ++step) {
    for (const int64_t n : {60, 128}) there_and_back(*fft, n);
    EXPECT_EQ(plans, before + 4) << "step " << step;
  }
}

TEST(KissFft, KeepsThePlansOfTheLengthsUsedLast) {
  const std::unique_ptr<RealFft> fft = make_cpu_fft();
  const std::vector<float> first = there_and_back(*fft, 2);
  constexpr int64_t kLengths = kMostFftPlans / 2 + 1;
  for (int64_t i = 2; i <= kLengths; ++i) there_and_back(*fft, 2 * i);
  const int full = plans;
  for (int64_t i = 2; i <= kLengths; ++i) there_and_back(*fft, 2 * i);
  EXPECT_EQ(plans, full);
  EXPECT_EQ(there_and_back(*fft, 2), first) << "planned again, with the same bits";
  EXPECT_EQ(plans, full + 2);
}

}  // namespace
}  // namespace wisp
