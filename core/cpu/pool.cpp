#include "core/cpu/pool.h"

#include <algorithm>

#include "core/parallel.h"

namespace wisp {
namespace {

/// The part of a window that lies inside the image.
struct Window {
  Window(const PoolSpec& s, int64_t oh, int64_t ow)
      : top(std::max<int64_t>(0, oh * s.stride - s.pad)),
        left(std::max<int64_t>(0, ow * s.stride - s.pad)),
        bottom(std::min(s.height, oh * s.stride - s.pad + s.kernel)),
        right(std::min(s.width, ow * s.stride - s.pad + s.kernel)) {}

  int64_t top, left, bottom, right;
};

struct Extents {
  explicit Extents(const PoolSpec& s)
      : x(s.height * s.width * s.channels), y(s.out_height() * s.out_width() * s.channels) {}

  int64_t x, y;  // elements of one image
};

/// body(n) for each image.
template <class Body>
void for_each_image(const PoolSpec& s, const Body& body) {
#pragma omp parallel for schedule(static) if (s.batch * Extents(s).x >= 2 * parallel::kGrain)
  for (int64_t n = 0; n < s.batch; ++n) body(n);
}

/// tap(offset in x's image, offset in y's image, whether it is the window's first), both offsets of
/// channel 0.
template <class Tap>
void for_each_tap(const PoolSpec& s, const Tap& tap) {
  for (int64_t oh = 0; oh < s.out_height(); ++oh)
    for (int64_t ow = 0; ow < s.out_width(); ++ow) {
      const Window window(s, oh, ow);
      bool first = true;
      for (int64_t h = window.top; h < window.bottom; ++h)
        for (int64_t w = window.left; w < window.right; ++w) {
          tap((h * s.width + w) * s.channels, (oh * s.out_width() + ow) * s.channels, first);
          first = false;
        }
    }
}

// ---- loops over the channels of one tap

WISP_CLONES void begin_max(const float* __restrict x, int64_t position, int64_t channels,
                           float* __restrict best, int32_t* __restrict argmax) {
  for (int64_t c = 0; c < channels; ++c) {
    best[c] = x[c];
    argmax[c] = static_cast<int32_t>(position + c);
  }
}

WISP_CLONES void take_max(const float* __restrict x, int64_t position, int64_t channels,
                          float* __restrict best, int32_t* __restrict argmax) {
  for (int64_t c = 0; c < channels; ++c) {
    const bool larger = x[c] > best[c] || x[c] != x[c];  // NaN wins and stays
    best[c] = larger ? x[c] : best[c];
    argmax[c] = larger ? static_cast<int32_t>(position + c) : argmax[c];
  }
}

/// into = scale · x, or into += scale · x
WISP_CLONES void put_scaled(float scale, const float* __restrict x, int64_t channels, bool add,
                            float* __restrict into) {
  if (add) {
    for (int64_t c = 0; c < channels; ++c) into[c] += scale * x[c];
  } else {
    for (int64_t c = 0; c < channels; ++c) into[c] = scale * x[c];
  }
}

float share(const PoolSpec& s) { return 1.0f / static_cast<float>(s.kernel * s.kernel); }

}  // namespace

void max_pool_forward(const PoolSpec& s, const float* x, float* y, int32_t* argmax) {
  const Extents image(s);
  for_each_image(s, [&](int64_t n) {
    for_each_tap(s, [&](int64_t in, int64_t out, bool first) {
      const int64_t position = n * image.x + in;
      (first ? begin_max : take_max)(x + position, position, s.channels, y + n * image.y + out,
                                     argmax + n * image.y + out);
    });
  });
}

void max_pool_backward(const PoolSpec& s, const float* dy, const int32_t* argmax, float* dx,
                       bool accumulate) {
  const Extents image(s);
  for_each_image(s, [&](int64_t n) {
    if (!accumulate) std::fill_n(dx + n * image.x, image.x, 0.0f);
    for (int64_t i = n * image.y; i < (n + 1) * image.y; ++i) dx[argmax[i]] += dy[i];
  });
}

void avg_pool_forward(const PoolSpec& s, const float* x, float* y) {
  const Extents image(s);
  for_each_image(s, [&](int64_t n) {
    for_each_tap(s, [&](int64_t in, int64_t out, bool first) {
      put_scaled(share(s), x + n * image.x + in, s.channels, !first, y + n * image.y + out);
    });
  });
}

void avg_pool_backward(const PoolSpec& s, const float* dy, float* dx, bool accumulate) {
  const Extents image(s);
  for_each_image(s, [&](int64_t n) {
    if (!accumulate) std::fill_n(dx + n * image.x, image.x, 0.0f);
    for_each_tap(s, [&](int64_t in, int64_t out, bool) {
      put_scaled(share(s), dy + n * image.y + out, s.channels, true, dx + n * image.x + in);
    });
  });
}

}  // namespace wisp
