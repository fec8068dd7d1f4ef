#include "core/cpu/pool.h"

#include <algorithm>
#include <vector>

#include "core/cpu/narrow.h"
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

void CpuPools::max_pool(const Stream& stream, const PoolSpec& s, const Tensor& x, Tensor& y,
                        Tensor& argmax) {
  if (x.dtype() == DType::f64) return reference_.max_pool(stream, s, x, y, argmax);
  submit_narrow(stream, x, [=](auto zero) {
    using T = decltype(zero);
    const Extents image(s);
    for_each_image(s, [&](int64_t n) {
      const T* const from = x.data<T>();
      T* const best = y.data<T>() + n * image.y;
      int32_t* const where = argmax.data<int32_t>() + n * image.y;
      for_each_tap(s, [&](int64_t in, int64_t out, bool first) {
        const int64_t position = n * image.x + in;
        (first ? begin_max<T> : take_max<T>)(from + position, position, s.channels, best + out,
                                             where + out);
      });
    });
  });
}

void CpuPools::max_pool_dx(const Stream& stream, const PoolSpec& s, const Tensor& dy,
                           const Tensor& argmax, GradSlot dx) {
  if (dy.dtype() == DType::f64) return reference_.max_pool_dx(stream, s, dy, argmax, dx);
  submit_narrow(stream, dy, [=](auto zero) {
    using T = decltype(zero);
    const Extents image(s);
    for_each_image(s, [&](int64_t n) {
      const Sums sums(dx.into.data<T>() + n * image.x, image.x, dx.accumulate);
      const T* const from = dy.data<T>();
      const int32_t* const where = argmax.data<int32_t>();
      for (int64_t i = n * image.y; i < (n + 1) * image.y; ++i)
        sums.data()[where[i] - n * image.x] += wide(from[i]);
    });
  });
}

void CpuPools::avg_pool(const Stream& stream, const PoolSpec& s, const Tensor& x, Tensor& y) {
  if (x.dtype() == DType::f64) return reference_.avg_pool(stream, s, x, y);
  submit_narrow(stream, x, [=](auto zero) {
    using T = decltype(zero);
    const Extents image(s);
    for_each_image(s, [&](int64_t n) {
      const Sums sums(y.data<T>() + n * image.y, image.y, false);
      const T* const from = x.data<T>() + n * image.x;
      for_each_tap(s, [&](int64_t in, int64_t out, bool first) {
        put_scaled(share(s), from + in, s.channels, !first, sums.data() + out);
      });
    });
  });
}

void CpuPools::avg_pool_dx(const Stream& stream, const PoolSpec& s, const Tensor& dy, GradSlot dx) {
  if (dy.dtype() == DType::f64) return reference_.avg_pool_dx(stream, s, dy, dx);
  submit_narrow(stream, dy, [=](auto zero) {
    using T = decltype(zero);
    const Extents image(s);
    for_each_image(s, [&](int64_t n) {
      const Sums sums(dx.into.data<T>() + n * image.x, image.x, dx.accumulate);
      const T* const from = dy.data<T>() + n * image.y;
      for_each_tap(s, [&](int64_t in, int64_t out, bool) {
        put_scaled(share(s), from + out, s.channels, true, sums.data() + in);
      });
    });
  });
}

}  // namespace wisp
