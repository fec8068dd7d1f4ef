// The emulated devices' stand-in for vendors' libraries: a CPU backend whose calls become tasks of
// the device's stream, on aliases of the device's memory. Its bits are the CPU's.
#include "core/backend.h"

#include <optional>
#include <utility>

#include "core/device/device_work.h"
#include "core/emulated/memory.h"
#include "core/emulated/runtime.h"

namespace wisp {
namespace {

/// The tensor for tasks, on its alias. It owns nothing, because only later work on the stream
/// reuses memory.
Tensor here(const Tensor& x) {
  if (!x.defined()) return {};
  std::byte* alias = emulated::Memory::get().alias(x.raw(), static_cast<size_t>(x.bytes()));
  WISP_CHECK(alias, "emulated device: a library was given memory of the host's, ", x.shape(), " ",
             name_of(x.dtype()));
  return {x.shape(), x.dtype(), std::shared_ptr<std::byte>(alias, [](std::byte*) {})};
}

GradSlot here(const GradSlot& slot) { return {here(slot.into), slot.accumulate}; }

std::optional<GradSlot> here(const GradSlot* slot) {
  return slot ? std::optional(here(*slot)) : std::nullopt;
}

std::optional<Tensor> here(const Tensor* x) { return x ? std::optional(here(*x)) : std::nullopt; }

RnnState here(const RnnState& state) { return {here(state.h), here(state.c)}; }

RnnWeights here(const RnnWeights& weights) {
  return {here(weights.input), here(weights.recurrent), here(weights.input_bias),
          here(weights.recurrent_bias)};
}

RnnGradients here(const RnnGradients& gradients) {
  return {here(gradients.input), here(gradients.recurrent), here(gradients.input_bias),
          here(gradients.recurrent_bias)};
}

template <class T>
std::vector<T> all_here(std::span<const T> items) {
  std::vector<T> result;
  for (const T& item : items) result.push_back(here(item));
  return result;
}

template <class T>
T* pointer(std::optional<T>& value) {
  return value ? &*value : nullptr;
}

/// The CPU's backend. Tasks share it, because a stream's tasks may outlive the object that posted
/// them.
struct Inner {
  explicit Inner(bool fastest)
      : backend(fastest ? make_backend(pool, now) : make_reference_backend(pool, now)) {}

  MemoryPool pool;  // the host's, for temporaries
  const Stream now = Stream::immediate();
  const std::unique_ptr<Backend> backend;
};

/// Makes call(backend, stream) the stream's next task.
template <class Call>
void run(const Stream& stream, const std::shared_ptr<Inner>& inner, Call call) {
  count_device_work({.calls = 1});
  emulated::enqueue(stream.native(), [inner, call = std::move(call)]() mutable {
    call(*inner->backend, inner->now);
  });
}

class EmulatedFft final : public RealFft {
 public:
  explicit EmulatedFft(std::shared_ptr<Inner> inner) : inner_(std::move(inner)) {}

  std::string numerics() const override { return inner_->backend->fft().numerics(); }
  void forward(const Stream& stream, int64_t n, const float* x, float* spectrum) override {
    run(stream, inner_,
        [n, x = moved(x), spectrum = moved(spectrum)](Backend& inner, const Stream& now) {
          inner.fft().forward(now, n, x, spectrum);
        });
  }
  void inverse(const Stream& stream, int64_t n, float* spectrum, float* x) override {
    run(stream, inner_,
        [n, spectrum = moved(spectrum), x = moved(x)](Backend& inner, const Stream& now) {
          inner.fft().inverse(now, n, spectrum, x);
        });
  }

 private:
  static float* moved(const float* x) {
    return reinterpret_cast<float*>(emulated::Memory::get().alias(x, sizeof *x));
  }

  std::shared_ptr<Inner> inner_;
};

class EmulatedBackend final : public Backend {
 public:
  explicit EmulatedBackend(bool fastest)
      : fastest_(fastest), inner_(std::make_shared<Inner>(fastest)), fft_(inner_) {}

  std::string name() const override { return inner_->backend->name(); }
  std::string numerics() const override { return inner_->backend->numerics(); }
  int64_t workspace_bytes() const override { return inner_->backend->workspace_bytes(); }
  int64_t kept_objects() const override { return inner_->backend->kept_objects(); }
  /// True with the reference backend, which reads either type, so a stale copy changes a run's
  /// bits.
  bool reads_rounded_weights() const override { return !fastest_; }

  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            GradSlot c) override {
    run(stream, inner_,
        [spec, a = here(a), b = here(b), c = here(c)](Backend& inner, const Stream& now) {
          inner.gemm(now, spec, a, b, c);
        });
  }

  void conv2d(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& w,
              Tensor& y) override {
    run(stream, inner_,
        [spec, x = here(x), w = here(w), y = here(y)](Backend& inner, const Stream& now) mutable {
          inner.conv2d(now, spec, x, w, y);
        });
  }
  void conv2d_dx(const Stream& stream, const ConvSpec& spec, const Tensor& dy, const Tensor& w,
                 GradSlot dx) override {
    run(stream, inner_,
        [spec, dy = here(dy), w = here(w), dx = here(dx)](Backend& inner, const Stream& now) {
          inner.conv2d_dx(now, spec, dy, w, dx);
        });
  }
  void conv2d_dw(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& dy,
                 GradSlot dw) override {
    run(stream, inner_,
        [spec, x = here(x), dy = here(dy), dw = here(dw)](Backend& inner, const Stream& now) {
          inner.conv2d_dw(now, spec, x, dy, dw);
        });
  }

  void max_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y,
                Tensor& argmax) override {
    run(stream, inner_,
        [spec, x = here(x), y = here(y), argmax = here(argmax)](Backend& inner,
                                                                const Stream& now) mutable {
          inner.max_pool(now, spec, x, y, argmax);
        });
  }
  void max_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                   const Tensor& argmax, GradSlot dx) override {
    run(stream, inner_,
        [spec, dy = here(dy), argmax = here(argmax), dx = here(dx)](
            Backend& inner, const Stream& now) { inner.max_pool_dx(now, spec, dy, argmax, dx); });
  }
  void avg_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y) override {
    run(stream, inner_,
        [spec, x = here(x), y = here(y)](Backend& inner, const Stream& now) mutable {
          inner.avg_pool(now, spec, x, y);
        });
  }
  void avg_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                   GradSlot dx) override {
    run(stream, inner_, [spec, dy = here(dy), dx = here(dx)](Backend& inner, const Stream& now) {
      inner.avg_pool_dx(now, spec, dy, dx);
    });
  }

  int64_t relu_mask_bytes(const BatchNormSpec& spec, DType activations) const override {
    return inner_->backend->relu_mask_bytes(spec, activations);
  }
  void batch_norm(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                  const Tensor& gamma, const Tensor& beta, const Tensor* residual, double momentum,
                  Tensor& running_mean, Tensor& running_var, Tensor& mean, Tensor& inv_std,
                  Tensor& y, Tensor& mask) override {
    run(stream, inner_,
        [spec, x = here(x), gamma = here(gamma), beta = here(beta), residual = here(residual),
         momentum, running_mean = here(running_mean), running_var = here(running_var),
         mean = here(mean), inv_std = here(inv_std), y = here(y),
         mask = here(mask)](Backend& inner, const Stream& now) mutable {
          inner.batch_norm(now, spec, x, gamma, beta, pointer(residual), momentum, running_mean,
                           running_var, mean, inv_std, y, mask);
        });
  }
  void batch_norm_eval(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                       const Tensor& gamma, const Tensor& beta, const Tensor* residual,
                       const Tensor& running_mean, const Tensor& running_var, Tensor& y) override {
    run(stream, inner_,
        [spec, x = here(x), gamma = here(gamma), beta = here(beta), residual = here(residual),
         running_mean = here(running_mean), running_var = here(running_var),
         y = here(y)](Backend& inner, const Stream& now) mutable {
          inner.batch_norm_eval(now, spec, x, gamma, beta, pointer(residual), running_mean,
                                running_var, y);
        });
  }
  void batch_norm_dx(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                     const Tensor& passed, const Tensor& dy, const Tensor& gamma,
                     const Tensor& mean, const Tensor& inv_std, GradSlot* dx, GradSlot* d_residual,
                     GradSlot* d_gamma, GradSlot* d_beta) override {
    run(stream, inner_,
        [spec, x = here(x), passed = here(passed), dy = here(dy), gamma = here(gamma),
         mean = here(mean), inv_std = here(inv_std), dx = here(dx), d_residual = here(d_residual),
         d_gamma = here(d_gamma),
         d_beta = here(d_beta)](Backend& inner, const Stream& now) mutable {
          inner.batch_norm_dx(now, spec, x, passed, dy, gamma, mean, inv_std, pointer(dx),
                              pointer(d_residual), pointer(d_gamma), pointer(d_beta));
        });
  }

  int64_t rnn_saved_bytes(const RnnSpec& spec, DType activations) const override {
    return inner_->backend->rnn_saved_bytes(spec, activations);
  }
  void rnn(const Stream& stream, const RnnSpec& spec, const Tensor& x,
           std::span<const RnnWeights> weights, const RnnState& before, Tensor& y, RnnState& after,
           Tensor& saved) override {
    run(stream, inner_,
        [spec, x = here(x), weights = all_here(weights), before = here(before), y = here(y),
         after = here(after), saved = here(saved)](Backend& inner, const Stream& now) mutable {
          inner.rnn(now, spec, x, weights, before, y, after, saved);
        });
  }
  void rnn_dx(const Stream& stream, const RnnSpec& spec, const Tensor& y, const Tensor& dy,
              std::span<const RnnWeights> weights, const RnnState& before, Tensor& saved,
              GradSlot* dx) override {
    run(stream, inner_,
        [spec, y = here(y), dy = here(dy), weights = all_here(weights), before = here(before),
         saved = here(saved), dx = here(dx)](Backend& inner, const Stream& now) mutable {
          inner.rnn_dx(now, spec, y, dy, weights, before, saved, pointer(dx));
        });
  }
  void rnn_dw(const Stream& stream, const RnnSpec& spec, const Tensor& x, const Tensor& y,
              const RnnState& before, const Tensor& saved,
              std::span<const RnnGradients> gradients) override {
    run(stream, inner_,
        [spec, x = here(x), y = here(y), before = here(before), saved = here(saved),
         gradients = all_here(gradients)](Backend& inner, const Stream& now) {
          inner.rnn_dw(now, spec, x, y, before, saved, gradients);
        });
  }

  RealFft& fft() override { return fft_; }

 private:
  const bool fastest_;
  std::shared_ptr<Inner> inner_;
  EmulatedFft fft_;
};

}  // namespace

std::unique_ptr<Backend> make_device_backend(MemoryPool&, const Stream&, bool fastest,
                                             const GpuMath&) {
  return std::make_unique<EmulatedBackend>(fastest);
}

std::string missing_for_cuda() {
  return "CUDA: configure with -DWISP_CUDA=ON (cmake --preset cuda)";
}

}  // namespace wisp
