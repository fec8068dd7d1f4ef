// Fourier transforms of real f32 numbers. One object per backend, used by its thread only: it keeps
// the library's plans and workspace, made for a length.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/device/stream.h"

namespace wisp {

/// How many plans are kept, those used last: 128 lengths, forward and inverse. The lengths are
/// those of a model's fields, of which a ResNet-50 has some twenty different ones.
constexpr int64_t kMostFftPlans = 256;

class RealFft {
 public:
  virtual ~RealFft() = default;
  /// What its results' bits depend on: library and version.
  virtual std::string numerics() const = 0;

  /// X_k = Σ x_i exp(-2π·sqrt(-1)·ik/n) for k in [0, n/2], n any length from 1: `spectrum` gets
  /// n/2 + 1 pairs (real, imaginary). No sum is scaled.
  virtual void forward(const Stream& stream, int64_t n, const float* x, float* spectrum) = 0;
  /// The x whose transform is the spectrum, times n. Of X_0, and of X_n/2 if n is even, the
  /// imaginary part counts as 0. May overwrite the spectrum.
  virtual void inverse(const Stream& stream, int64_t n, float* spectrum, float* x) = 0;
};

/// The least even 2^a·3^b·5^c that is not below n: every library is fast there.
int64_t fast_fft_size(int64_t n);

/// Plain recursion over the prime factors of n, any n, on the CPU. Takes n times their sum: for
/// lengths of large prime factors it is slow.
std::unique_ptr<RealFft> make_reference_fft();

/// The fastest that this build has for the CPU: kissfft if it was found, else the reference.
std::unique_ptr<RealFft> make_cpu_fft();

}  // namespace wisp
