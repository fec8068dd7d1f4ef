#include "core/kernels/direct_conv.h"

#include <cassert>

#include "core/loops/parallel.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// A pixel of a batch of images.
struct Pixel {
  int64_t n, h, w;
};

/// A ConvSpec with the index computations of kernels.
struct Geometry {
  explicit Geometry(const ConvSpec& s)
      : spec(s),
        out_height(s.out_height()),
        out_width(s.out_width()),
        inputs(s.in_channels / s.groups),
        outputs(s.out_channels / s.groups) {}

  WISP_HD static Pixel position(int64_t pixel, int64_t height, int64_t width) {
    return {pixel / width / height, pixel / width % height, pixel % width};
  }
  WISP_HD int64_t x_pixel(const Pixel& at) const {
    return (at.n * spec.height + at.h) * spec.width + at.w;
  }
  WISP_HD int64_t y_pixel(const Pixel& at) const {
    return (at.n * out_height + at.h) * out_width + at.w;
  }
  /// The index of the first weight of an output channel's tap.
  WISP_HD int64_t weight(int64_t o, int64_t kh, int64_t kw) const {
    return ((o * spec.kernel.h + kh) * spec.kernel.w + kw) * inputs;
  }
  /// The pixel of x under a tap of the window at y's pixel. Returns false if it is padding.
  WISP_HD bool meets(const Pixel& y, int64_t kh, int64_t kw, Pixel* x) const {
    x->n = y.n;
    x->h = y.h * spec.stride.h - spec.pad.h + kh * spec.dilation.h;
    x->w = y.w * spec.stride.w - spec.pad.w + kw * spec.dilation.w;
    return 0 <= x->h && x->h < spec.height && 0 <= x->w && x->w < spec.width;
  }
  /// The pixel of y whose window has x's pixel under that tap. Returns false if there is none.
  WISP_HD bool met_by(const Pixel& x, int64_t kh, int64_t kw, Pixel* y) const {
    const int64_t h = x.h + spec.pad.h - kh * spec.dilation.h;
    const int64_t w = x.w + spec.pad.w - kw * spec.dilation.w;
    y->n = x.n;
    y->h = h / spec.stride.h;
    y->w = w / spec.stride.w;
    return h >= 0 && h % spec.stride.h == 0 && y->h < out_height && w >= 0 &&
           w % spec.stride.w == 0 && y->w < out_width;
  }

  ConvSpec spec;
  int64_t out_height, out_width;
  int64_t inputs, outputs;  // channels per group
};

struct Forward {
  Geometry g;
  const double *x, *w;
  double* y;

  WISP_HD void operator()(int64_t i) const {
    const int64_t o = i % g.spec.out_channels;
    const Pixel out = Geometry::position(i / g.spec.out_channels, g.out_height, g.out_width);
    const int64_t first = o / g.outputs * g.inputs;
    double sum = 0.0;
    for (int64_t kh = 0; kh < g.spec.kernel.h; ++kh)
      for (int64_t kw = 0; kw < g.spec.kernel.w; ++kw) {
        Pixel in;
        if (!g.meets(out, kh, kw, &in)) continue;
        const double* const pixel = x + g.x_pixel(in) * g.spec.in_channels + first;
        const double* const tap = w + g.weight(o, kh, kw);
        for (int64_t c = 0; c < g.inputs; ++c) sum += pixel[c] * tap[c];
      }
    y[i] = sum;
  }
};

struct BackwardData {
  Geometry g;
  const double *dy, *w;
  double* dx;
  bool accumulate;

  WISP_HD void operator()(int64_t i) const {
    const int64_t c = i % g.spec.in_channels;
    const Pixel in = Geometry::position(i / g.spec.in_channels, g.spec.height, g.spec.width);
    const int64_t first = c / g.inputs * g.outputs;
    double sum = 0.0;
    for (int64_t kh = 0; kh < g.spec.kernel.h; ++kh)
      for (int64_t kw = 0; kw < g.spec.kernel.w; ++kw) {
        Pixel out;
        if (!g.met_by(in, kh, kw, &out)) continue;
        const double* const pixel = dy + g.y_pixel(out) * g.spec.out_channels;
        for (int64_t o = first; o < first + g.outputs; ++o)
          sum += pixel[o] * w[g.weight(o, kh, kw) + c % g.inputs];
      }
    deposit(dx + i, sum, accumulate);
  }
};

struct BackwardFilter {
  Geometry g;
  const double *x, *dy;
  double* dw;
  bool accumulate;

  WISP_HD void operator()(int64_t i) const {
    const int64_t tap = i / g.inputs;
    const int64_t kw = tap % g.spec.kernel.w;
    const int64_t kh = tap / g.spec.kernel.w % g.spec.kernel.h;
    const int64_t o = tap / g.spec.kernel.w / g.spec.kernel.h;
    const int64_t c = o / g.outputs * g.inputs + i % g.inputs;
    const int64_t pixels = g.spec.batch * g.out_height * g.out_width;
    double sum = 0.0;
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      Pixel in;
      if (!g.meets(Geometry::position(pixel, g.out_height, g.out_width), kh, kw, &in)) continue;
      sum += dy[pixel * g.spec.out_channels + o] * x[g.x_pixel(in) * g.spec.in_channels + c];
    }
    deposit(dw + i, sum, accumulate);
  }
};

}  // namespace

void direct_convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
                     const Tensor& second, const GradSlot& result) {
  assert(pass != ConvPass::forward || !result.accumulate);
  const Geometry g(spec);
  const double *a = first.data<double>(), *b = second.data<double>();
  double* const into = result.into.data<double>();
  const int64_t numel = result.into.numel(), taps = spec.kernel.h * spec.kernel.w;
  switch (pass) {
    case ConvPass::forward:
      return parallel_for(stream, numel, Forward{g, a, b, into}, taps * g.inputs);
    case ConvPass::dx:
      return parallel_for(stream, numel, BackwardData{g, a, b, into, result.accumulate},
                          taps * g.outputs);
    case ConvPass::dw:
      return parallel_for(stream, numel, BackwardFilter{g, a, b, into, result.accumulate},
                          spec.batch * g.out_height * g.out_width);
  }
}

}  // namespace wisp
