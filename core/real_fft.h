// Fourier transforms of real f32 numbers. A backend has one object, for its own thread only. The
// object caches the library's plans and workspace, which depend on the length.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/device/stream.h"

namespace wisp {

/// Number of cached plans, the most recently used: 128 lengths, forward and inverse. The lengths
/// are those of a model's fields; a ResNet-50 has some twenty.
constexpr int64_t kMostFftPlans = 256;

class RealFft {
 public:
  virtual ~RealFft() = default;
  /// Everything that the bits of results depend on: library and version.
  virtual std::string numerics() const = 0;

  /// X_k = Σ x_i exp(-2π·sqrt(-1)·ik/n) for k in [0, n/2], for any n from 1. `spectrum` gets n/2 +
  /// 1 pairs (real, imaginary). The sums are not scaled.
  virtual void forward(const Stream& stream, int64_t n, const float* x, float* spectrum) = 0;
  /// n times the x whose transform is `spectrum`. The imaginary parts of X_0, and of X_n/2 if n is
  /// even, count as 0. May overwrite the spectrum.
  virtual void inverse(const Stream& stream, int64_t n, float* spectrum, float* x) = 0;
};

/// The least even 2^a·3^b·5^c that is at least n. Every library is fast at these lengths.
int64_t fast_fft_size(int64_t n);

/// Plain recursion over the prime factors of n, for any n, on the CPU. Its time is proportional to
/// n times the sum of the factors, so lengths with large prime factors are slow.
std::unique_ptr<RealFft> make_reference_fft();

/// The fastest transform of this build for the CPU: kissfft if it was found, else the reference.
std::unique_ptr<RealFft> make_cpu_fft();

}  // namespace wisp
