// The CPU backend on oneDNN for f32 and bf16, with kissfft's transforms. f64 uses the reference
// loops. Primitives are made and run inside the stream's tasks, so one thread makes and runs them
// under one OpenMP setting.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <variant>
#include <vector>

#include "core/backend.h"
#include "core/base/recently_used.h"
#include "core/cpu/batch_norm.h"
#include "core/cpu/block_product.h"
#include "core/cpu/onednn_conv.h"
#include "core/cpu/onednn_gemm.h"
#include "core/cpu/pool.h"
#include "core/cpu/rnn.h"
#include "core/real_fft.h"

namespace wisp {
namespace {

template <class T>
BatchNormTarget<T> target_of(const GradSlot& slot) {
  if (!slot.into.defined()) return {};
  return {slot.into.data<T>(), slot.accumulate};
}

class OnednnBackend final : public Backend, Products, Convolutions, Pools, Norms, RecurrentLayers {
 public:
  OnednnBackend(MemoryPool& pool, int64_t stream_id)
      : pool_(pool),
        reference_(make_cpu_reference_backend(pool, stream_id)),
        engine_(dnnl::engine::kind::cpu, 0),
        queue_(engine_) {
    // Each backend keeps its own primitives, because all threads share the library's cache.
    dnnl::set_primitive_cache_capacity(0);
  }

  std::string name() const override { return "onednn"; }
  std::string numerics() const override {
    const dnnl_version_t& version = *dnnl_version();
    const auto bf16 = block_kernels<BFloat16>();
    return concat("onednn ", version.major, ".", version.minor, ".", version.patch, " ",
                  instruction_set(), ", recurrent ", block_kernel<float>().name,
                  bf16.empty() ? "" : concat(" and ", bf16[0].name), ", fft ", fft_->numerics());
  }
  int64_t workspace_bytes() const override { return workspace_.defined() ? workspace_.bytes() : 0; }
  int64_t kept_objects() const override { return ops_.size(); }

  Products& products() override { return *this; }
  Convolutions& convolutions() override { return *this; }
  Pools& pools() override { return *this; }
  Norms& norms() override { return *this; }
  RecurrentLayers& recurrent() override { return *this; }
  RealFft& fft() override { return *fft_; }

  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            GradSlot c) override {
    if (a.dtype() == DType::f64) return reference_->products().gemm(stream, spec, a, b, c);
    if (a.dtype() == DType::bf16) return submit_bf16_gemm(stream, spec, a, b, c);
    stream.submit([=] {
      const dnnl::status status =
          dnnl::sgemm(spec.transpose_a ? 'T' : 'N', spec.transpose_b ? 'T' : 'N', spec.m, spec.n,
                      spec.k, 1.0f, a.data<float>(), spec.transpose_a ? spec.m : spec.k,
                      b.data<float>(), spec.transpose_b ? spec.k : spec.n,
                      c.accumulate ? 1.0f : 0.0f, c.into.data<float>(), spec.n);
      WISP_CHECK(status == dnnl::status::success, "gemm (", spec.m, ", ", spec.n, ", ", spec.k,
                 "): oneDNN returned ", static_cast<int>(status));
    });
  }

  void convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
                const Tensor& second, const GradSlot& result) override {
    if (first.dtype() == DType::f64)
      return reference_->convolutions().convolve(stream, pass, spec, first, second, result);
    stream.submit([=, this] {
      try {
        const DType images = first.dtype();
        run(ops_.find(ConvKey{pass, spec, images, omp_get_max_threads()},
                      [&] { return make_conv(engine_, pass, spec, images); }),
            first, second, result);
      } catch (const dnnl::error& error) {
        throw Error(concat(described(pass, spec), ": oneDNN: ", error.what()));
      }
    });
  }

  void max_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y,
                Tensor& argmax) override {
    if (x.dtype() == DType::f64) return reference_->pools().max_pool(stream, spec, x, y, argmax);
    submit(stream, x, [=](auto zero) {
      using T = decltype(zero);
      max_pool_forward(spec, x.data<T>(), y.data<T>(), argmax.data<int32_t>());
    });
  }

  void max_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                   const Tensor& argmax, GradSlot dx) override {
    if (dy.dtype() == DType::f64)
      return reference_->pools().max_pool_dx(stream, spec, dy, argmax, dx);
    submit(stream, dy, [=](auto zero) {
      using T = decltype(zero);
      max_pool_backward(spec, dy.data<T>(), argmax.data<int32_t>(), dx.into.data<T>(),
                        dx.accumulate);
    });
  }

  void avg_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y) override {
    if (x.dtype() == DType::f64) return reference_->pools().avg_pool(stream, spec, x, y);
    submit(stream, x, [=](auto zero) {
      using T = decltype(zero);
      avg_pool_forward(spec, x.data<T>(), y.data<T>());
    });
  }

  void avg_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                   GradSlot dx) override {
    if (dy.dtype() == DType::f64) return reference_->pools().avg_pool_dx(stream, spec, dy, dx);
    submit(stream, dy, [=](auto zero) {
      using T = decltype(zero);
      avg_pool_backward(spec, dy.data<T>(), dx.into.data<T>(), dx.accumulate);
    });
  }

  void batch_norm(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                  const Tensor& gamma, const Tensor& beta, const Tensor* residual, double momentum,
                  Tensor& running_mean, Tensor& running_var, Tensor& mean, Tensor& inv_std,
                  Tensor& y, Tensor& no_mask) override {
    if (x.dtype() == DType::f64)
      return reference_->norms().batch_norm(stream, spec, x, gamma, beta, residual, momentum,
                                            running_mean, running_var, mean, inv_std, y, no_mask);
    submit(stream, x, [=, this, added = spec.residual ? *residual : Tensor()](auto zero) {
      using T = decltype(zero);
      float* scratch = batch_norm_workspace(spec);
      float* variance = inv_std.data<float>();  // variance until the inversion below
      batch_norm_moments(spec, x.data<T>(), mean.data<float>(), variance, scratch);
      const double unbiased = static_cast<double>(spec.rows) / static_cast<double>(spec.rows - 1);
      for (int64_t c = 0; c < spec.channels; ++c) {
        move_towards(mean.data<float>()[c], momentum, running_mean.data<float>()[c]);
        move_towards(variance[c] * unbiased, momentum, running_var.data<float>()[c]);
        inv_std.data<float>()[c] = inverse_deviation(variance[c], spec.epsilon);
      }
      batch_norm_apply(
          spec, x.data<T>(), spec.residual ? added.data<T>() : nullptr,
          {mean.data<float>(), inv_std.data<float>(), gamma.data<float>(), beta.data<float>()},
          y.data<T>(), scratch);
    });
  }

  void batch_norm_eval(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                       const Tensor& gamma, const Tensor& beta, const Tensor* residual,
                       const Tensor& running_mean, const Tensor& running_var, Tensor& y) override {
    if (x.dtype() == DType::f64)
      return reference_->norms().batch_norm_eval(stream, spec, x, gamma, beta, residual,
                                                 running_mean, running_var, y);
    submit(stream, x, [=, this, added = spec.residual ? *residual : Tensor()](auto zero) {
      using T = decltype(zero);
      float* inv_std = batch_norm_workspace(spec);
      for (int64_t c = 0; c < spec.channels; ++c)
        inv_std[c] = inverse_deviation(running_var.data<float>()[c], spec.epsilon);
      batch_norm_apply(
          spec, x.data<T>(), spec.residual ? added.data<T>() : nullptr,
          {running_mean.data<float>(), inv_std, gamma.data<float>(), beta.data<float>()},
          y.data<T>(), inv_std + spec.channels);
    });
  }

  void batch_norm_dx(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                     const Tensor& y, const Tensor& dy, const Tensor& gamma, const Tensor& mean,
                     const Tensor& inv_std, GradSlot* dx, GradSlot* d_residual, GradSlot* d_gamma,
                     GradSlot* d_beta) override {
    if (x.dtype() == DType::f64)
      return reference_->norms().batch_norm_dx(stream, spec, x, y, dy, gamma, mean, inv_std, dx,
                                               d_residual, d_gamma, d_beta);
    submit(stream, x,
           [=, this, dx_slot = slot_or_none(dx),
            residual_slot = slot_or_none(spec.residual ? d_residual : nullptr),
            gamma_slot = slot_or_none(d_gamma), beta_slot = slot_or_none(d_beta)](auto zero) {
             using T = decltype(zero);
             const BatchNormBackward<T> arguments{x.data<T>(),
                                                  spec.relu ? y.data<T>() : nullptr,
                                                  dy.data<T>(),
                                                  gamma.data<float>(),
                                                  mean.data<float>(),
                                                  inv_std.data<float>(),
                                                  target_of<T>(dx_slot),
                                                  target_of<T>(residual_slot),
                                                  target_of<float>(gamma_slot),
                                                  target_of<float>(beta_slot)};
             batch_norm_backward(spec, arguments, batch_norm_workspace(spec));
           });
  }

  int64_t rnn_saved_bytes(const RnnSpec& spec, DType activations) const override {
    if (!own_rnn(activations)) return reference_->recurrent().rnn_saved_bytes(spec, activations);
    return activations == DType::bf16 ? rnn_kept_bytes<BFloat16>(spec)
                                      : rnn_kept_bytes<float>(spec);
  }

  void rnn(const Stream& stream, const RnnSpec& spec, const Tensor& x,
           std::span<const RnnWeights> weights, const RnnState& before, Tensor& y, RnnState& after,
           Tensor& saved) override {
    if (!own_rnn(x.dtype()))
      return reference_->recurrent().rnn(stream, spec, x, weights, before, y, after, saved);
    submit(stream, x, [=, this, kept = saved, layers = copy_of(weights)](auto zero) {
      using T = decltype(zero);
      rnn_forward<T>(spec, x, layers, before, y, after, kept,
                     workspace(rnn_workspace<T>(spec, RnnPass::forward)));
    });
  }

  void rnn_dx(const Stream& stream, const RnnSpec& spec, const Tensor& y, const Tensor& dy,
              std::span<const RnnWeights> weights, const RnnState& before, Tensor& saved,
              GradSlot* dx) override {
    if (!own_rnn(y.dtype()))
      return reference_->recurrent().rnn_dx(stream, spec, y, dy, weights, before, saved, dx);
    submit(stream, y, [=, this, slot = slot_or_none(dx), layers = copy_of(weights)](auto zero) {
      using T = decltype(zero);
      wisp::rnn_dx<T>(spec, y, dy, layers, before, saved, slot,
                      workspace(rnn_workspace<T>(spec, RnnPass::dx)));
    });
  }

  void rnn_dw(const Stream& stream, const RnnSpec& spec, const Tensor& x, const Tensor& y,
              const RnnState& before, const Tensor& saved,
              std::span<const RnnGradients> gradients) override {
    if (!own_rnn(x.dtype()))
      return reference_->recurrent().rnn_dw(stream, spec, x, y, before, saved, gradients);
    submit(stream, x, [=, this, slots = copy_of(gradients)](auto zero) {
      using T = decltype(zero);
      wisp::rnn_dw<T>(spec, x, y, before, saved, slots,
                      workspace(rnn_workspace<T>(spec, RnnPass::dw)));
    });
  }

 private:
  // a primitive is for one number of threads
  struct ConvKey {
    ConvPass pass;
    ConvSpec spec;
    DType images;
    int threads;
    bool operator==(const ConvKey&) const = default;
  };
  struct GemmKey {
    GemmSpec spec;
    DType b, c;
    int threads;
    bool operator==(const GemmKey&) const = default;
  };

  void submit_bf16_gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a,
                        const Tensor& b, const GradSlot& c) {
    stream.submit([=, this] {
      try {
        const DType b_type = b.dtype();
        const DType c_type = c.into.dtype();
        run(ops_.find(GemmKey{spec, b_type, c_type, omp_get_max_threads()},
                      [&] { return std::vector{make_bf16_gemm(engine_, spec, b_type, c_type)}; }),
            a, b, c);
      } catch (const dnnl::error& error) {
        throw Error(concat("gemm (", spec.m, ", ", spec.n, ", ", spec.k,
                           ") in bf16: oneDNN: ", error.what()));
      }
    });
  }

  void run(std::vector<OnednnOp>& ops, const Tensor& first, const Tensor& second,
           const GradSlot& result) {
    const bool several = ops.size() > 1;
    if (several && !result.accumulate) result.into.clear();
    const bool accumulate = several || result.accumulate;
    for (OnednnOp& op : ops)
      op.run(queue_, first.raw(), second.raw(), result.into.raw(), accumulate,
             workspace(op.workspace_bytes(accumulate)));
    queue_.wait();
  }

  /// Submits loop(T{}), where T is the element type of `like`.
  template <class Loop>
  static void submit(const Stream& stream, const Tensor& like, Loop loop) {
    if (like.dtype() == DType::bf16) return stream.submit([loop] { loop(BFloat16{}); });
    stream.submit([loop] { loop(float{}); });
  }

  /// At least `bytes` bytes, valid until the next call. Only a larger request replaces the memory.
  std::byte* workspace(int64_t bytes) {
    if (!workspace_.defined() || workspace_.bytes() < bytes) {
      workspace_ = {};
      workspace_ = Tensor({bytes}, DType::u8, pool_, workspace_range_);
    }
    return workspace_.raw();
  }

  static bool own_rnn(DType activations) {
    return activations != DType::f64 && missing_for(activations).empty();
  }

  template <class T>
  static std::vector<T> copy_of(std::span<const T> values) {
    return {values.begin(), values.end()};
  }

  float* batch_norm_workspace(const BatchNormSpec& spec) {
    const int64_t numel = batch_norm_scratch(spec) + spec.channels;
    return reinterpret_cast<float*>(workspace(numel * size_of(DType::f32)));
  }

  static float inverse_deviation(float variance, double epsilon) {
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance) + epsilon));
  }

  static void move_towards(double target, double momentum, float& running) {
    running = static_cast<float>(running + momentum * (target - running));
  }

  MemoryPool& pool_;
  // own range of the pool, so that growth leaves no hole among activations
  const int64_t workspace_range_ = Stream::immediate().id();
  std::unique_ptr<Backend> reference_;
  dnnl::engine engine_;
  dnnl::stream queue_;
  RecentlyUsed<std::variant<ConvKey, GemmKey>, std::vector<OnednnOp>> ops_{kMostKeptObjects};
  std::unique_ptr<RealFft> fft_ = make_cpu_fft();
  Tensor workspace_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(MemoryPool& pool, int64_t stream_id) {
  return std::make_unique<OnednnBackend>(pool, stream_id);
}

std::string missing_for(DType compute) {
  // without it the library emulates bf16, many times slower than f32
  const dnnl::cpu_isa found = dnnl::get_effective_cpu_isa();
  const bool there =
      found == dnnl::cpu_isa::avx512_core_bf16 || found == dnnl::cpu_isa::avx512_core_amx;
  return compute == DType::bf16 && !there ? "a CPU with AVX-512 BF16 (avx512_bf16)" : "";
}

}  // namespace wisp
