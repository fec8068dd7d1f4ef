// A discrete Fourier transform by its definition and one identity: a transform of p·m numbers
// combines p transforms, each of every p-th number. Source: Cooley & Tukey 1965. In f32 and f64,
// for any length; tests compare the libraries with it. One thread at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace wisp {

template <class T>
struct Complex {
  T re = 0, im = 0;
};

template <class T>
class ReferenceFft {
 public:
  explicit ReferenceFft(int64_t n) : n_(n), root_(static_cast<size_t>(n)), whole_(root_.size()) {
    for (int64_t rest = n, p = 2; rest > 1; ++p) {
      if (p * p > rest) p = rest;
      for (; rest % p == 0; rest /= p) factors_.push_back(p);
    }
    for (int64_t i = 0; i < n; ++i) {
      const double angle =
          -2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
      root_[static_cast<size_t>(i)] = {static_cast<T>(std::cos(angle)),
                                       static_cast<T>(std::sin(angle))};
    }
    input_ = whole_;
    group_.resize(factors_.empty() ? 1 : static_cast<size_t>(factors_.back()));
  }

  /// Transforms x (n) to `spectrum`, n/2 + 1 pairs.
  void forward(const T* x, T* spectrum) {
    for (int64_t i = 0; i < n_; ++i) input_[static_cast<size_t>(i)] = {x[i], 0};
    transform(0, n_, input_.data(), 1, whole_.data());
    for (int64_t k = 0; k <= n_ / 2; ++k) {
      spectrum[2 * k] = whole_[static_cast<size_t>(k)].re;
      spectrum[2 * k + 1] = whole_[static_cast<size_t>(k)].im;
    }
  }

  /// The inverse transform times n. The inverse of X is the transform of its conjugate, which is
  /// X_n-k for a real x.
  void inverse(const T* spectrum, T* x) {
    for (int64_t k = 0; k <= n_ / 2; ++k) {
      const bool real = k == 0 || 2 * k == n_;
      const Complex<T> value{spectrum[2 * k], real ? 0 : spectrum[2 * k + 1]};
      input_[static_cast<size_t>(k)] = {value.re, -value.im};
      if (!real) input_[static_cast<size_t>(n_ - k)] = value;
    }
    transform(0, n_, input_.data(), 1, whole_.data());
    for (int64_t i = 0; i < n_; ++i) x[i] = whole_[static_cast<size_t>(i)].re;
  }

 private:
  /// Computes out_k = Σ_i in_(i·stride) w^(ik), where w is the n-th root of unity, by the factors
  /// from `level` on.
  void transform(size_t level, int64_t n, const Complex<T>* in, int64_t stride, Complex<T>* out) {
    if (n == 1) {
      *out = *in;
      return;
    }
    const int64_t p = factors_[level];
    const int64_t m = n / p;
    for (int64_t q = 0; q < p; ++q)
      transform(level + 1, m, in + q * stride, stride * p, out + q * m);
    // out_(k + r·m) = Σ_q w^(q·(k + r·m)) · (q-th part)_k
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t q = 0; q < p; ++q) group_[static_cast<size_t>(q)] = out[q * m + k];
      for (int64_t r = 0; r < p; ++r) {
        Complex<T> sum = group_[0];
        int64_t power = 0;
        for (int64_t q = 1; q < p; ++q) {
          power += (k + r * m) * stride;  // below 2 n_
          if (power >= n_) power -= n_;
          const Complex<T> w = root_[static_cast<size_t>(power)];
          const Complex<T> part = group_[static_cast<size_t>(q)];
          sum.re += w.re * part.re - w.im * part.im;
          sum.im += w.re * part.im + w.im * part.re;
        }
        out[k + r * m] = sum;
      }
    }
  }

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Complex<T>> root_;  // powers of the n-th root of unity
  std::vector<Complex<T>> whole_, input_, group_;
};

}  // namespace wisp
