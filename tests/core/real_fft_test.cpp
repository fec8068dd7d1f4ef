#include "core/real_fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "core/copy.h"
#include "core/cpu/reference_fft.h"
#include "core/random.h"
#include "tests/support/devices.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

template <class T>
std::vector<T> noise(int64_t n) {
  const Philox philox(1, 0, static_cast<uint64_t>(n));
  std::vector<T> x;
  for (int64_t i = 0; i < n; ++i)
    x.push_back(static_cast<T>(philox.uniform(static_cast<uint64_t>(i)) - 0.5f));
  return x;
}

std::vector<double> by_definition(const std::vector<double>& x) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<double> spectrum;
  for (int64_t k = 0; k <= n / 2; ++k) {
    double re = 0.0, im = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      const double angle =
          -2.0 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n);
      re += x[static_cast<size_t>(i)] * std::cos(angle);
      im += x[static_cast<size_t>(i)] * std::sin(angle);
    }
    spectrum.push_back(re);
    spectrum.push_back(im);
  }
  return spectrum;
}

template <class T, class U>
double relative_error(const std::vector<T>& actual, const std::vector<U>& expected) {
  double error = 0.0, norm = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double apart = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
    error += apart * apart;
    norm += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return std::sqrt(error / norm);
}

TEST(ReferenceFft, IsTheDefinition) {
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 12, 30, 97, 128, 210, 1000}) {
    SCOPED_TRACE(n);
    const std::vector<double> x = noise<double>(n);
    ReferenceFft<double> fft(n);
    std::vector<double> spectrum(static_cast<size_t>(n / 2 + 1) * 2), back(x.size());
    fft.forward(x.data(), spectrum.data());
    EXPECT_LT(relative_error(spectrum, by_definition(x)), 1e-12);
    fft.inverse(spectrum.data(), back.data());
    for (double& value : back) value /= static_cast<double>(n);
    EXPECT_LT(relative_error(back, x), 1e-14);
  }
}

TEST(ReferenceFft, TransformsFourNumbers) {
  const std::vector<float> x = {1, 2, 3, 5};
  std::vector<float> spectrum(6);
  ReferenceFft<float>(4).forward(x.data(), spectrum.data());
  const std::vector<float> expected = {11, 0, -2, 3, -3, 0};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(spectrum[i], expected[i], 1e-6) << i;
}

constexpr int64_t kLengths[] = {1, 2, 4, 6, 9, 16, 30, 97, 1000, 4860, 65536, 91125};
// f32 rounds at 6e-8; a transform's error grows with the square root of its number of stages
constexpr double kTolerance = 1e-6;

int64_t spectrum_numel(int64_t n) { return (n / 2 + 1) * 2; }

std::vector<double> spectrum_in_f64(const std::vector<float>& x) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<double> spectrum(static_cast<size_t>(spectrum_numel(n)));
  ReferenceFft<double>(n).forward(std::vector<double>(x.begin(), x.end()).data(), spectrum.data());
  return spectrum;
}

/// Both transforms that a build has in f32 on the CPU, against the reference in f64.
TEST(RealFft, AgreesWithTheReference) {
  const Stream stream = Stream::immediate();
  for (const auto& fft : {make_reference_fft(), make_cpu_fft()}) {
    SCOPED_TRACE(fft->numerics());
    for (const int64_t n : kLengths) {
      SCOPED_TRACE(n);
      const std::vector<float> x = noise<float>(n);
      std::vector<float> spectrum(static_cast<size_t>(spectrum_numel(n))), back(x.size());
      fft->forward(stream, n, x.data(), spectrum.data());
      EXPECT_LT(relative_error(spectrum, spectrum_in_f64(x)), kTolerance);
      fft->inverse(stream, n, spectrum.data(), back.data());
      for (float& value : back) value /= static_cast<float>(n);
      EXPECT_LT(relative_error(back, x), kTolerance);
    }
  }
}

/// The transform of the device's library.
class DeviceFft : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    const bool real = std::string(device_kind()) == "cuda";
    if (const std::string missing = real ? missing_for_cuda() : ""; !missing.empty())
      GTEST_SKIP() << "lacks " << missing;
  }
  Tensor on_device(TestContext& rig, const std::vector<float>& x) const {
    const Tensor there = rig.context.empty({static_cast<int64_t>(x.size())}, DType::f32);
    copy_now(rig.stream, tensor_of(x), there);
    return there;
  }
};

TEST_F(DeviceFft, AgreesWithTheReference) {
  TestContext rig({.library = Library::fastest, .device = first_device()});
  RealFft& fft = rig.backend->fft();
  for (const int64_t n : kLengths) {
    SCOPED_TRACE(n);
    const std::vector<float> numbers = noise<float>(n);
    const Tensor x = on_device(rig, numbers);
    const Tensor spectrum = rig.context.empty({spectrum_numel(n)}, DType::f32);
    fft.forward(rig.stream, n, x.data<float>(), spectrum.data<float>());
    EXPECT_LT(relative_error(values(fetch(rig.stream, spectrum)), spectrum_in_f64(numbers)),
              kTolerance);
    const Tensor back = rig.context.empty({n}, DType::f32);
    fft.inverse(rig.stream, n, spectrum.data<float>(), back.data<float>());
    std::vector<double> again = values(fetch(rig.stream, back));
    for (double& value : again) value /= static_cast<double>(n);
    EXPECT_LT(relative_error(again, numbers), kTolerance);
  }
}

TEST_F(DeviceFft, IgnoresImaginaryPartsOfRealCoefficients) {
  TestContext rig({.library = Library::fastest, .device = first_device()});
  for (const int64_t n : {2, 8, 9}) {
    SCOPED_TRACE(n);
    const std::vector<float> numbers = noise<float>(spectrum_numel(n));
    std::vector<float> real = numbers;
    real[1] = 0.0f;
    if (n % 2 == 0) real.back() = 0.0f;
    std::vector<std::vector<double>> results;
    for (const std::vector<float>& of : {numbers, real}) {
      const Tensor spectrum = on_device(rig, of);
      const Tensor x = rig.context.empty({n}, DType::f32);
      rig.backend->fft().inverse(rig.stream, n, spectrum.data<float>(), x.data<float>());
      results.push_back(values(fetch(rig.stream, x)));
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(RealFft, IgnoresImaginaryPartsOfRealCoefficients) {
  const Stream stream = Stream::immediate();
  for (const auto& fft : {make_reference_fft(), make_cpu_fft()}) {
    for (const int64_t n : {2, 8, 9}) {
      std::vector<float> spectrum = noise<float>((n / 2 + 1) * 2), real = spectrum;
      real[1] = 0.0f;
      if (n % 2 == 0) real.back() = 0.0f;
      std::vector<float> x(static_cast<size_t>(n)), expected(x);
      fft->inverse(stream, n, spectrum.data(), x.data());
      fft->inverse(stream, n, real.data(), expected.data());
      EXPECT_EQ(x, expected) << fft->numerics() << " " << n;
    }
  }
}

TEST(RealFft, WorksOnALateStream) {
  TestContext late({.late = true, .library = Library::fastest}), now({.library = Library::fastest});
  const std::vector<float> x = noise<float>(360);
  std::vector<float> spectrum(362), expected(362), back(360), expected_back(360);
  late.backend->fft().forward(late.stream, 360, x.data(), spectrum.data());
  late.backend->fft().inverse(late.stream, 360, spectrum.data(), back.data());
  now.backend->fft().forward(now.stream, 360, x.data(), expected.data());
  now.backend->fft().inverse(now.stream, 360, expected.data(), expected_back.data());
  late.stream.synchronize();
  EXPECT_EQ(back, expected_back);
}

TEST(RealFft, HasFastSizes) {
  const auto is_fast = [](int64_t n) {
    for (const int64_t p : {2, 3, 5})
      while (n % p == 0) n /= p;
    return n == 1;
  };
  for (int64_t n = 1; n < 3000; ++n) {
    int64_t expected = n + n % 2;
    while (!is_fast(expected)) expected += 2;
    EXPECT_EQ(fast_fft_size(n), expected) << n;
  }
  EXPECT_EQ(fast_fft_size(25'000'000), 25'000'000);
  EXPECT_EQ(fast_fft_size((int64_t{1} << 31) - 1), int64_t{1} << 31);
}

}  // namespace
}  // namespace wisp
