// The reference backend: plain loops for every op, in f32 and f64, and in f32 around bf16 tensors.
// They define the results of the other backends. One thread computes each output element in a fixed
// order, so results do not depend on the number of threads.
#include <cassert>
#include <span>
#include <vector>

#include "core/backend.h"
#include "core/convolutions.h"
#include "core/cpu/reference_batch_norm.h"
#include "core/cpu/reference_operands.h"
#include "core/cpu/reference_pool.h"
#include "core/cpu/reference_rnn.h"
#include "core/products.h"
#include "core/real_fft.h"

namespace wisp {
namespace {

/// Whether this number of multiplications is worth waking threads.
bool parallel_pays(int64_t operations) { return operations >= 1 << 17; }

/// In f32 the compiler's inlining decides the order of the sum: moving this to a header changes
/// bits.
template <class T>
T dot(const T* a, const T* b, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <class T>
void add_scaled(T scale, const T* x, T* into, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) into[i] += scale * x[i];
}

// ---- gemm

template <class T>
void gemm(const GemmSpec& s, const T* a, const T* b, const Target<T>& c) {
#pragma omp parallel for schedule(static) if (parallel_pays(s.m * s.n * s.k))
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      T sum = 0;
      for (int64_t p = 0; p < s.k; ++p) {
        const T left = s.transpose_a ? a[p * s.m + i] : a[i * s.k + p];
        const T right = s.transpose_b ? b[j * s.k + p] : b[p * s.n + j];
        sum += left * right;
      }
      c.put(i * s.n + j, sum);
    }
  }
}

// ---- convolution

/// Calls visit(image position in x, position in y, kernel tap) for each tap outside of the padding,
/// over the images [first, last).
template <class Visit>
void for_each_tap(const ConvSpec& s, int64_t first, int64_t last, const Visit& visit) {
  for (int64_t n = first; n < last; ++n)
    for (int64_t oh = 0; oh < s.out_height(); ++oh)
      for (int64_t ow = 0; ow < s.out_width(); ++ow)
        for (int64_t kh = 0; kh < s.kernel.h; ++kh)
          for (int64_t kw = 0; kw < s.kernel.w; ++kw) {
            const int64_t h = oh * s.stride.h - s.pad.h + kh * s.dilation.h;
            const int64_t w = ow * s.stride.w - s.pad.w + kw * s.dilation.w;
            if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
            visit((n * s.height + h) * s.width + w, (n * s.out_height() + oh) * s.out_width() + ow,
                  kh * s.kernel.w + kw);
          }
}

/// Channel offsets of an output channel: its group's first input channel, and its weights' row.
struct ConvChannels {
  explicit ConvChannels(const ConvSpec& s)
      : inputs(s.in_channels / s.groups),
        outputs(s.out_channels / s.groups),
        taps(s.kernel.h * s.kernel.w),
        operations(s.batch * s.out_height() * s.out_width() * s.out_channels * taps * inputs) {}
  int64_t first_input(int64_t o) const { return o / outputs * inputs; }
  int64_t weight(int64_t o, int64_t tap) const { return (o * taps + tap) * inputs; }

  int64_t inputs, outputs;  // per group
  int64_t taps;
  int64_t operations;  // multiplications of the whole convolution
};

template <class T>
void conv2d(const ConvSpec& s, const T* x, const T* w, T* y) {
  const ConvChannels channels(s);
  const int64_t y_image = s.out_height() * s.out_width() * s.out_channels;
#pragma omp parallel for schedule(static) if (parallel_pays(channels.operations))
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t i = 0; i < y_image; ++i) y[n * y_image + i] = 0;
    for_each_tap(s, n, n + 1, [&](int64_t in, int64_t out, int64_t tap) {
      for (int64_t o = 0; o < s.out_channels; ++o)
        y[out * s.out_channels + o] += dot(x + in * s.in_channels + channels.first_input(o),
                                           w + channels.weight(o, tap), channels.inputs);
    });
  }
}

template <class T>
void conv2d_dx(const ConvSpec& s, const T* dy, const T* w, const Target<T>& dx) {
  const ConvChannels channels(s);
  dx.zero_unless_accumulating();
#pragma omp parallel for schedule(static) if (parallel_pays(channels.operations))
  for (int64_t n = 0; n < s.batch; ++n) {
    for_each_tap(s, n, n + 1, [&](int64_t in, int64_t out, int64_t tap) {
      for (int64_t o = 0; o < s.out_channels; ++o)
        add_scaled(dy[out * s.out_channels + o], w + channels.weight(o, tap),
                   dx.data() + in * s.in_channels + channels.first_input(o), channels.inputs);
    });
  }
}

template <class T>
void conv2d_dw(const ConvSpec& s, const T* x, const T* dy, const Target<T>& dw) {
  const ConvChannels channels(s);
  dw.zero_unless_accumulating();
#pragma omp parallel for schedule(static) if (parallel_pays(channels.operations))
  for (int64_t o = 0; o < s.out_channels; ++o) {
    for_each_tap(s, 0, s.batch, [&](int64_t in, int64_t out, int64_t tap) {
      add_scaled(dy[out * s.out_channels + o], x + in * s.in_channels + channels.first_input(o),
                 dw.data() + channels.weight(o, tap), channels.inputs);
    });
  }
}

// ---- the backend

class ReferenceBackend final : public Backend,
                               Products,
                               Convolutions,
                               Pools,
                               Norms,
                               RecurrentLayers {
 public:
  std::string name() const override { return "reference"; }
  Products& products() override { return *this; }
  Convolutions& convolutions() override { return *this; }
  Pools& pools() override { return *this; }
  Norms& norms() override { return *this; }
  RecurrentLayers& recurrent() override { return *this; }
  RealFft& fft() override { return *fft_; }

  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            GradSlot c) override {
    submit(stream, a, "gemm", [=](auto zero) {
      using T = decltype(zero);
      wisp::gemm(spec, ReferenceSource<T>(a).data(), ReferenceSource<T>(b, a).data(), Target<T>(c));
    });
  }

  void convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
                const Tensor& second, const GradSlot& result) override {
    assert(pass != ConvPass::forward || !result.accumulate);
    submit(stream, first, name_of(pass), [=](auto zero) {
      using T = decltype(zero);
      const ReferenceSource<T> a(first), b(second, first);
      const Target<T> into(result);
      if (pass == ConvPass::forward) return conv2d(spec, a.data(), b.data(), into.data());
      if (pass == ConvPass::dx) return conv2d_dx(spec, a.data(), b.data(), into);
      conv2d_dw(spec, a.data(), b.data(), into);
    });
  }

  void max_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y,
                Tensor& argmax) override {
    submit(stream, x, "max_pool", [=](auto zero) {
      using T = decltype(zero);
      wisp::max_pool(spec, ReferenceSource<T>(x).data(), Target<T>({y}).data(),
                     argmax.data<int32_t>());
    });
  }

  void max_pool_dx(const Stream& stream, const PoolSpec&, const Tensor& dy, const Tensor& argmax,
                   GradSlot dx) override {
    submit(stream, dy, "max_pool_dx", [=](auto zero) {
      using T = decltype(zero);
      wisp::max_pool_dx(ReferenceSource<T>(dy).data(), argmax, Target<T>(dx));
    });
  }

  void avg_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y) override {
    submit(stream, x, "avg_pool", [=](auto zero) {
      using T = decltype(zero);
      wisp::avg_pool(spec, ReferenceSource<T>(x).data(), Target<T>({y}).data());
    });
  }

  void avg_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                   GradSlot dx) override {
    submit(stream, dy, "avg_pool_dx", [=](auto zero) {
      using T = decltype(zero);
      wisp::avg_pool_dx(spec, ReferenceSource<T>(dy).data(), Target<T>(dx));
    });
  }

  void batch_norm(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                  const Tensor& gamma, const Tensor& beta, const Tensor& residual, double momentum,
                  Tensor& running_mean, Tensor& running_var, Tensor& mean, Tensor& inv_std,
                  Tensor& y, Tensor& /*no_mask*/) override {
    submit(stream, x, "batch_norm", [=](auto zero) {
      using T = decltype(zero);
      const ReferenceSource<T> input(x), add(spec.residual ? residual : Tensor());
      const Target<T> output({y});
#pragma omp parallel for schedule(static) if (parallel_pays(x.numel()))
      for (int64_t c = 0; c < spec.channels; ++c) {
        const ReferenceMoments moments = channel_moments(spec, input.data(), c);
        const auto rows = static_cast<double>(spec.rows);
        mean.data<T>()[c] = static_cast<T>(moments.mean);
        inv_std.data<T>()[c] = static_cast<T>(inverse_deviation(moments.variance, spec.epsilon));
        move_towards(moments.mean, momentum, running_mean.data<T>() + c);
        move_towards(moments.variance * rows / (rows - 1), momentum, running_var.data<T>() + c);
        normalise_channel(spec, input.data(), add.data(), mean.data<T>()[c], inv_std.data<T>()[c],
                          gamma.data<T>()[c], beta.data<T>()[c], c, output.data());
      }
    });
  }

  void batch_norm_eval(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                       const Tensor& gamma, const Tensor& beta, const Tensor& residual,
                       const Tensor& running_mean, const Tensor& running_var, Tensor& y) override {
    submit(stream, x, "batch_norm_eval", [=](auto zero) {
      using T = decltype(zero);
      const ReferenceSource<T> input(x), add(spec.residual ? residual : Tensor());
      const Target<T> output({y});
#pragma omp parallel for schedule(static) if (parallel_pays(x.numel()))
      for (int64_t c = 0; c < spec.channels; ++c) {
        const auto variance = static_cast<double>(running_var.data<T>()[c]);
        normalise_channel(spec, input.data(), add.data(), running_mean.data<T>()[c],
                          static_cast<T>(inverse_deviation(variance, spec.epsilon)),
                          gamma.data<T>()[c], beta.data<T>()[c], c, output.data());
      }
    });
  }

  void batch_norm_dx(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                     const Tensor& y, const Tensor& dy, const Tensor& gamma, const Tensor& mean,
                     const Tensor& inv_std, const GradSlot& dx, const GradSlot& d_residual,
                     const GradSlot& d_gamma, const GradSlot& d_beta) override {
    submit(stream, x, "batch_norm_dx", [=](auto zero) {
      using T = decltype(zero);
      const BatchNormGradients<T> out{Target<T>(dx), Target<T>(d_residual), Target<T>(d_gamma),
                                      Target<T>(d_beta)};
      const ReferenceSource<T> input(x), gradient(dy), outputs(spec.relu ? y : Tensor());
#pragma omp parallel for schedule(static) if (parallel_pays(x.numel()))
      for (int64_t c = 0; c < spec.channels; ++c)
        batch_norm_dx_channel(spec, input.data(), outputs.data(), gradient.data(),
                              gamma.data<T>()[c], mean.data<T>()[c], inv_std.data<T>()[c], c, out);
    });
  }

  int64_t rnn_saved_bytes(const RnnSpec& spec, DType activations) const override {
    int64_t element = 0;
    dispatch_float(wide_of(activations), "rnn", [&](auto zero) {
      element = static_cast<int64_t>(sizeof zero) * ReferenceRnnKept<decltype(zero)>::numel(spec);
    });
    return spec.directions * element;
  }

  void rnn(const Stream& stream, const RnnSpec& spec, const Tensor& x,
           std::span<const RnnWeights> weights, const RnnState& before, Tensor& y, RnnState& after,
           Tensor& saved) override {
    const std::vector layers(weights.begin(), weights.end());
    submit(stream, x, "rnn", [=](auto zero) {
      using T = decltype(zero);
      const ReferenceSource<T> input(x), h_before(before.h), c_before(before.c);
      const Target<T> output({y}), h_after({after.h}), c_after({after.c});
      std::vector<T> unsaved;
      if (!saved.defined())
        unsaved.resize(static_cast<size_t>(spec.directions * ReferenceRnnKept<T>::numel(spec)));
      T* all = saved.defined() ? reinterpret_cast<T*>(saved.raw()) : unsaved.data();
      for (int64_t d = 0; d < spec.directions; ++d) {
        const RnnFactors<T> factors(layers[static_cast<size_t>(d)], x);
        const auto kept = ReferenceRnnKept<T>::of(spec, all, d);
        rnn_forward(spec, d, input.data(), factors, h_before.data(), c_before.data(), x.dtype(),
                    kept, output.data());
        const int64_t width = spec.directions * spec.hidden;
        if (after.h.defined())
          rnn_after(spec, d, output.data(), width, d * spec.hidden, h_after.data());
        if (after.c.defined()) rnn_after(spec, d, kept.more, spec.hidden, 0, c_after.data());
      }
    });
  }

  void rnn_dx(const Stream& stream, const RnnSpec& spec, const Tensor& y, const Tensor& dy,
              std::span<const RnnWeights> weights, const RnnState& before, Tensor& saved,
              const GradSlot& dx) override {
    const std::vector layers(weights.begin(), weights.end());
    submit(stream, y, "rnn_dx", [=](auto zero) {
      using T = decltype(zero);
      const ReferenceSource<T> output(y), gradient(dy), h_before(before.h), c_before(before.c);
      const Target<T> into(dx);
      for (int64_t d = 0; d < spec.directions; ++d) {
        const RnnFactors<T> factors(layers[static_cast<size_t>(d)], y);
        const auto kept = ReferenceRnnKept<T>::of(spec, reinterpret_cast<T*>(saved.raw()), d);
        rnn_gate_gradients(spec, d, output.data(), gradient.data(), factors, h_before.data(),
                           c_before.data(), kept);
        if (into.data())
          rnn_input_gradient(spec, factors, kept, dx.accumulate || d > 0, into.data());
      }
    });
  }

  void rnn_dw(const Stream& stream, const RnnSpec& spec, const Tensor& x, const Tensor& y,
              const RnnState& before, const Tensor& saved,
              std::span<const RnnGradients> gradients) override {
    const std::vector slots(gradients.begin(), gradients.end());
    submit(stream, x, "rnn_dw", [=](auto zero) {
      using T = decltype(zero);
      const ReferenceSource<T> input(x), output(y), h_before(before.h);
      for (int64_t d = 0; d < spec.directions; ++d) {
        const RnnGradients& slot = slots[static_cast<size_t>(d)];
        const RnnWeightTargets<T> into{Target<T>(slot.input), Target<T>(slot.recurrent),
                                       Target<T>(slot.input_bias), Target<T>(slot.recurrent_bias)};
        const auto kept = ReferenceRnnKept<T>::of(spec, reinterpret_cast<T*>(saved.raw()), d);
        rnn_weight_gradients(spec, d, input.data(), output.data(), h_before.data(), kept, into);
      }
    });
  }

 private:
  /// Submits op(T{}), where T is the compute type of `like`.
  template <class Op>
  static void submit(const Stream& stream, const Tensor& like, const char* name, Op op) {
    dispatch_float(wide_of(like.dtype()), name,
                   [&](auto zero) { stream.submit([op, zero] { op(zero); }); });
  }

  std::unique_ptr<RealFft> fft_ = make_reference_fft();
};

}  // namespace

std::unique_ptr<Backend> make_cpu_reference_backend() {
  return std::make_unique<ReferenceBackend>();
}

}  // namespace wisp
