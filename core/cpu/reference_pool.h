// Pooling of the reference backend: plain loops in T, float or double. Any thread may call.
#pragma once

#include "core/cpu/reference_operands.h"
#include "core/pools.h"

namespace wisp {

/// For each output: begin(position in y), then tap(position in y, position in x) for each input of
/// its window outside of the padding, then end(position in y). Positions include the channel.
template <class Begin, class Tap, class End>
void for_each_window(const PoolSpec& s, const Begin& begin, const Tap& tap, const End& end) {
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t oh = 0; oh < s.out_height(); ++oh)
      for (int64_t ow = 0; ow < s.out_width(); ++ow)
        for (int64_t c = 0; c < s.channels; ++c) {
          const int64_t out = ((n * s.out_height() + oh) * s.out_width() + ow) * s.channels + c;
          begin(out);
          for (int64_t kh = 0; kh < s.kernel; ++kh)
            for (int64_t kw = 0; kw < s.kernel; ++kw) {
              const int64_t h = oh * s.stride - s.pad + kh;
              const int64_t w = ow * s.stride - s.pad + kw;
              if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
              tap(out, ((n * s.height + h) * s.width + w) * s.channels + c);
            }
          end(out);
        }
}

template <class T>
void max_pool(const PoolSpec& s, const T* x, T* y, int32_t* argmax) {
  int64_t best = -1;
  for_each_window(
      s, [&](int64_t) { best = -1; },
      [&](int64_t, int64_t in) {
        const bool not_a_number = x[in] != x[in];
        if (best < 0 || x[in] > x[best] || not_a_number) best = in;
      },
      [&](int64_t out) {
        y[out] = x[best];
        argmax[out] = static_cast<int32_t>(best);
      });
}

template <class T>
void max_pool_dx(const T* dy, const Tensor& argmax, const Target<T>& dx) {
  dx.zero_unless_accumulating();
  for (int64_t i = 0; i < argmax.numel(); ++i) dx.data()[argmax.data<int32_t>()[i]] += dy[i];
}

template <class T>
T pool_share(const PoolSpec& s) {
  return T{1} / static_cast<T>(s.kernel * s.kernel);
}

template <class T>
void avg_pool(const PoolSpec& s, const T* x, T* y) {
  for_each_window(
      s, [&](int64_t out) { y[out] = 0; }, [&](int64_t out, int64_t in) { y[out] += x[in]; },
      [&](int64_t out) { y[out] *= pool_share<T>(s); });
}

template <class T>
void avg_pool_dx(const PoolSpec& s, const T* dy, const Target<T>& dx) {
  dx.zero_unless_accumulating();
  T* into = dx.data();
  for_each_window(
      s, [](int64_t) {}, [&](int64_t out, int64_t in) { into[in] += dy[out] * pool_share<T>(s); },
      [](int64_t) {});
}

}  // namespace wisp
