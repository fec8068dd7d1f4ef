#include "core/cpu/pool.h"

#include <algorithm>
#include <vector>

#include "core/loops/parallel.h"

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

/// Calls body(n) for each image.
template <class Body>
void for_each_image(const PoolSpec& s, const Body& body) {
#pragma omp parallel for schedule(static) if (s.batch * Extents(s).x >= 2 * parallel::kGrain)
  for (int64_t n = 0; n < s.batch; ++n) body(n);
}

/// Calls tap(offset in x's image, offset in y's image, first) for each tap. Both offsets are of
/// channel 0; `first` is true for the window's first tap.
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

/// The sums of an image. f32 is summed in place, bf16 in a copy that the destructor rounds.
class Sums {
 public:
  Sums(float* into, int64_t numel, bool accumulate) : data_(into) {
    if (!accumulate) std::fill_n(data_, numel, 0.0f);
  }
  Sums(BFloat16* into, int64_t numel, bool accumulate)
      : copy_(static_cast<size_t>(numel)), data_(copy_.data()), into_(into) {
    for (int64_t i = 0; accumulate && i < numel; ++i) data_[i] = wide(into[i]);
  }
  ~Sums() {
    for (size_t i = 0; i < copy_.size(); ++i) store(into_ + i, copy_[i]);
  }
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;

  float* data() const { return data_; }

 private:
  std::vector<float> copy_;
  float* data_;
  BFloat16* into_ = nullptr;
};

// ---- loops over the channels of one tap

template <class T>
WISP_CLONES void begin_max(const T* __restrict x, int64_t position, int64_t channels,
                           T* __restrict best, int32_t* __restrict argmax) {
  for (int64_t c = 0; c < channels; ++c) {
    store(best + c, wide(x[c]));
    argmax[c] = static_cast<int32_t>(position + c);
  }
}

template <class T>
WISP_CLONES void take_max(const T* __restrict x, int64_t position, int64_t channels,
                          T* __restrict best, int32_t* __restrict argmax) {
  for (int64_t c = 0; c < channels; ++c) {
    const float value = wide(x[c]);
    const float before = wide(best[c]);
    const bool larger = value > before || value != value;  // NaN wins and stays
    store(best + c, larger ? value : before);
    argmax[c] = larger ? static_cast<int32_t>(position + c) : argmax[c];
  }
}

/// Computes into = scale · x, or into += scale · x.
template <class T>
WISP_CLONES void put_scaled(float scale, const T* __restrict x, int64_t channels, bool add,
                            float* __restrict into) {
  if (add) {
    for (int64_t c = 0; c < channels; ++c) into[c] += scale * wide(x[c]);
  } else {
    for (int64_t c = 0; c < channels; ++c) into[c] = scale * wide(x[c]);
  }
}

float share(const PoolSpec& s) { return 1.0f / static_cast<float>(s.kernel * s.kernel); }

}  // namespace

template <class T>
void max_pool_forward(const PoolSpec& s, const T* x, T* y, int32_t* argmax) {
  const Extents image(s);
  for_each_image(s, [&](int64_t n) {
    for_each_tap(s, [&](int64_t in, int64_t out, bool first) {
      const int64_t position = n * image.x + in;
      (first ? begin_max<T> : take_max<T>)(x + position, position, s.channels,
                                           y + n * image.y + out, argmax + n * image.y + out);
    });
  });
}

template <class T>
void max_pool_backward(const PoolSpec& s, const T* dy, const int32_t* argmax, T* dx,
                       bool accumulate) {
  const Extents image(s);
  for_each_image(s, [&](int64_t n) {
    const Sums sums(dx + n * image.x, image.x, accumulate);
    for (int64_t i = n * image.y; i < (n + 1) * image.y; ++i)
      sums.data()[argmax[i] - n * image.x] += wide(dy[i]);
  });
}

template <class T>
void avg_pool_forward(const PoolSpec& s, const T* x, T* y) {
  const Extents image(s);
  for_each_image(s, [&](int64_t n) {
    const Sums sums(y + n * image.y, image.y, false);
    for_each_tap(s, [&](int64_t in, int64_t out, bool first) {
      put_scaled(share(s), x + n * image.x + in, s.channels, !first, sums.data() + out);
    });
  });
}

template <class T>
void avg_pool_backward(const PoolSpec& s, const T* dy, T* dx, bool accumulate) {
  const Extents image(s);
  for_each_image(s, [&](int64_t n) {
    const Sums sums(dx + n * image.x, image.x, accumulate);
    for_each_tap(s, [&](int64_t in, int64_t out, bool) {
      put_scaled(share(s), dy + n * image.y + out, s.channels, true, sums.data() + in);
    });
  });
}

template void max_pool_forward(const PoolSpec&, const float*, float*, int32_t*);
template void max_pool_backward(const PoolSpec&, const float*, const int32_t*, float*, bool);
template void avg_pool_forward(const PoolSpec&, const float*, float*);
template void avg_pool_backward(const PoolSpec&, const float*, float*, bool);

template void max_pool_forward(const PoolSpec&, const BFloat16*, BFloat16*, int32_t*);
template void max_pool_backward(const PoolSpec&, const BFloat16*, const int32_t*, BFloat16*, bool);
template void avg_pool_forward(const PoolSpec&, const BFloat16*, BFloat16*);
template void avg_pool_backward(const PoolSpec&, const BFloat16*, BFloat16*, bool);

}  // namespace wisp
