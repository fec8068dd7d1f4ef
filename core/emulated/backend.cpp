// The emulated devices' stand-in for vendors' libraries: a CPU backend whose calls become tasks of
// the device's stream, on aliases of the device's memory. Its bits are the CPU's.
#include "core/backend.h"

#include <tuple>
#include <utility>

#include "core/convolutions.h"
#include "core/device/device_work.h"
#include "core/emulated/memory.h"
#include "core/emulated/runtime.h"
#include "core/norms.h"
#include "core/pools.h"
#include "core/products.h"
#include "core/real_fft.h"
#include "core/rnn.h"

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

RnnState here(const RnnState& state) { return {here(state.h), here(state.c)}; }

RnnWeights here(const RnnWeights& weights) {
  return {here(weights.input), here(weights.recurrent), here(weights.input_bias),
          here(weights.recurrent_bias)};
}

RnnGradients here(const RnnGradients& gradients) {
  return {here(gradients.input), here(gradients.recurrent), here(gradients.input_bias),
          here(gradients.recurrent_bias)};
}

float* here(const float* x) {
  return reinterpret_cast<float*>(emulated::Memory::get().alias(x, sizeof *x));
}

float* here(float* x) { return here(static_cast<const float*>(x)); }

template <class T>
std::vector<T> here(std::span<const T> items) {
  std::vector<T> result;
  for (const T& item : items) result.push_back(here(item));
  return result;
}

/// Sizes and numbers are the same everywhere.
template <class T>
T here(const T& value) {
  return value;
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

/// Queues cpu.op(arguments) as the stream's next task, on aliases of the arguments.
template <class Kind, class... Parameters, class... Arguments>
void run(const std::shared_ptr<Inner>& inner, const Stream& stream, Kind& cpu,
         void (Kind::*op)(const Stream&, Parameters...), const Arguments&... arguments) {
  count_device_work({.calls = 1});
  emulated::enqueue(stream.native(),
                    [op, inner, &cpu, copies = std::tuple(here(arguments)...)]() mutable {
                      std::apply([&](auto&... copy) { (cpu.*op)(inner->now, copy...); }, copies);
                    });
}

/// The transform is a class by itself, because Backend has a numerics() too.
class EmulatedFft final : public RealFft {
 public:
  explicit EmulatedFft(std::shared_ptr<Inner> inner) : inner_(std::move(inner)) {}
  std::string numerics() const override { return cpu_.numerics(); }
  void forward(const Stream& stream, int64_t n, const float* x, float* spectrum) override {
    run(inner_, stream, cpu_, &RealFft::forward, n, x, spectrum);
  }
  void inverse(const Stream& stream, int64_t n, float* spectrum, float* x) override {
    run(inner_, stream, cpu_, &RealFft::inverse, n, spectrum, x);
  }

 private:
  const std::shared_ptr<Inner> inner_;
  RealFft& cpu_ = inner_->backend->fft();
};

class EmulatedBackend final : public Backend,
                              Products,
                              Convolutions,
                              Pools,
                              Norms,
                              RecurrentLayers {
 public:
  explicit EmulatedBackend(bool fastest)
      : fastest_(fastest), inner_(std::make_shared<Inner>(fastest)) {}

  std::string name() const override { return cpu_.name(); }
  std::string numerics() const override { return cpu_.numerics(); }
  int64_t workspace_bytes() const override { return cpu_.workspace_bytes(); }
  int64_t kept_objects() const override { return cpu_.kept_objects(); }
  /// True with the reference backend, which reads either type, so a stale copy changes a run's
  /// bits.
  bool reads_rounded_weights() const override { return !fastest_; }

  Products& products() override { return *this; }
  Convolutions& convolutions() override { return *this; }
  Pools& pools() override { return *this; }
  Norms& norms() override { return *this; }
  RecurrentLayers& recurrent() override { return *this; }
  RealFft& fft() override { return fft_; }

  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            GradSlot c) override {
    run(inner_, stream, cpu_.products(), &Products::gemm, spec, a, b, c);
  }

  void convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
                const Tensor& second, const GradSlot& result) override {
    run(inner_, stream, cpu_.convolutions(), &Convolutions::convolve, pass, spec, first, second,
        result);
  }

  void max_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y,
                Tensor& argmax) override {
    run(inner_, stream, cpu_.pools(), &Pools::max_pool, spec, x, y, argmax);
  }
  void max_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                   const Tensor& argmax, GradSlot dx) override {
    run(inner_, stream, cpu_.pools(), &Pools::max_pool_dx, spec, dy, argmax, dx);
  }
  void avg_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y) override {
    run(inner_, stream, cpu_.pools(), &Pools::avg_pool, spec, x, y);
  }
  void avg_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                   GradSlot dx) override {
    run(inner_, stream, cpu_.pools(), &Pools::avg_pool_dx, spec, dy, dx);
  }

  int64_t relu_mask_bytes(const BatchNormSpec& spec, DType activations) const override {
    return cpu_.norms().relu_mask_bytes(spec, activations);
  }
  void batch_norm(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                  const Tensor& gamma, const Tensor& beta, const Tensor& residual, double momentum,
                  Tensor& running_mean, Tensor& running_var, Tensor& mean, Tensor& inv_std,
                  Tensor& y, Tensor& mask) override {
    run(inner_, stream, cpu_.norms(), &Norms::batch_norm, spec, x, gamma, beta, residual, momentum,
        running_mean, running_var, mean, inv_std, y, mask);
  }
  void batch_norm_eval(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                       const Tensor& gamma, const Tensor& beta, const Tensor& residual,
                       const Tensor& running_mean, const Tensor& running_var, Tensor& y) override {
    run(inner_, stream, cpu_.norms(), &Norms::batch_norm_eval, spec, x, gamma, beta, residual,
        running_mean, running_var, y);
  }
  void batch_norm_dx(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                     const Tensor& passed, const Tensor& dy, const Tensor& gamma,
                     const Tensor& mean, const Tensor& inv_std, const GradSlot& dx,
                     const GradSlot& d_residual, const GradSlot& d_gamma,
                     const GradSlot& d_beta) override {
    run(inner_, stream, cpu_.norms(), &Norms::batch_norm_dx, spec, x, passed, dy, gamma, mean,
        inv_std, dx, d_residual, d_gamma, d_beta);
  }

  int64_t rnn_saved_bytes(const RnnSpec& spec, DType activations) const override {
    return cpu_.recurrent().rnn_saved_bytes(spec, activations);
  }
  void rnn(const Stream& stream, const RnnSpec& spec, const Tensor& x,
           std::span<const RnnWeights> weights, const RnnState& before, Tensor& y, RnnState& after,
           Tensor& saved) override {
    run(inner_, stream, cpu_.recurrent(), &RecurrentLayers::rnn, spec, x, weights, before, y, after,
        saved);
  }
  void rnn_dx(const Stream& stream, const RnnSpec& spec, const Tensor& y, const Tensor& dy,
              std::span<const RnnWeights> weights, const RnnState& before, Tensor& saved,
              const GradSlot& dx) override {
    run(inner_, stream, cpu_.recurrent(), &RecurrentLayers::rnn_dx, spec, y, dy, weights, before,
        saved, dx);
  }
  void rnn_dw(const Stream& stream, const RnnSpec& spec, const Tensor& x, const Tensor& y,
              const RnnState& before, const Tensor& saved,
              std::span<const RnnGradients> gradients) override {
    run(inner_, stream, cpu_.recurrent(), &RecurrentLayers::rnn_dw, spec, x, y, before, saved,
        gradients);
  }

 private:
  const bool fastest_;
  const std::shared_ptr<Inner> inner_;
  Backend& cpu_ = *inner_->backend;
  EmulatedFft fft_{inner_};
};

}  // namespace

std::unique_ptr<Backend> make_device_backend(MemoryPool&, const Stream&, bool fastest,
                                             const GpuMath&) {
  return std::make_unique<EmulatedBackend>(fastest);
}

}  // namespace wisp
