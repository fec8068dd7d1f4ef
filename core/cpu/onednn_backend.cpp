// The CPU backend on oneDNN, for f32; f64 goes to the reference loops. Primitives are made and run
// inside the stream's tasks, so always by the thread, and under the OpenMP setting, that uses them.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "core/cpu/batch_norm.h"
#include "core/cpu/onednn_conv.h"
#include "core/cpu/pool.h"

namespace wisp {
namespace {

const char* name_of(ConvPass pass) {
  if (pass == ConvPass::forward) return "conv2d";
  return pass == ConvPass::dx ? "conv2d_dx" : "conv2d_dw";
}

/// Runs calls of the library; their failures become Error.
template <class Calls>
void checked(ConvPass pass, const ConvSpec& s, const Calls& calls) {
  try {
    calls();
  } catch (const dnnl::error& error) {
    throw Error(concat(name_of(pass), ": images (", s.batch, ", ", s.height, ", ", s.width, ", ",
                       s.in_channels, "), weight (", s.out_channels, ", ", s.kernel_h, ", ",
                       s.kernel_w, ", ", s.in_channels / s.groups, "): oneDNN: ", error.what()));
  }
}

BatchNormTarget target_of(const GradSlot& slot) {
  if (!slot.into.defined()) return {};
  return {slot.into.data<float>(), slot.accumulate};
}

GradSlot slot_or_none(const GradSlot* slot) { return slot ? *slot : GradSlot{}; }

class OnednnBackend final : public Backend {
 public:
  OnednnBackend(MemoryPool& pool, int64_t stream_id)
      : pool_(pool),
        reference_(make_reference_backend(pool, stream_id)),
        engine_(dnnl::engine::kind::cpu, 0),
        queue_(engine_) {}

  std::string name() const override { return "onednn"; }
  std::string numerics() const override {
    const dnnl_version_t& version = *dnnl_version();
    return concat("onednn ", version.major, ".", version.minor, ".", version.patch, " isa ",
                  static_cast<int>(dnnl::get_effective_cpu_isa()));
  }
  int64_t workspace_bytes() const override { return workspace_.defined() ? workspace_.bytes() : 0; }

  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            GradSlot c) override {
    if (a.dtype() != DType::f32) return reference_->gemm(stream, spec, a, b, c);
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

  void conv2d(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& w,
              Tensor& y) override {
    if (x.dtype() != DType::f32) return reference_->conv2d(stream, spec, x, w, y);
    submit_conv(stream, ConvPass::forward, spec, x, w, {y, false});
  }

  void conv2d_dx(const Stream& stream, const ConvSpec& spec, const Tensor& dy, const Tensor& w,
                 GradSlot dx) override {
    if (dy.dtype() != DType::f32) return reference_->conv2d_dx(stream, spec, dy, w, dx);
    submit_conv(stream, ConvPass::dx, spec, dy, w, dx);
  }

  void conv2d_dw(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& dy,
                 GradSlot dw) override {
    if (x.dtype() != DType::f32) return reference_->conv2d_dw(stream, spec, x, dy, dw);
    submit_conv(stream, ConvPass::dw, spec, x, dy, dw);
  }

  void max_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y,
                Tensor& argmax) override {
    if (x.dtype() != DType::f32) return reference_->max_pool(stream, spec, x, y, argmax);
    stream.submit(
        [=] { max_pool_forward(spec, x.data<float>(), y.data<float>(), argmax.data<int32_t>()); });
  }

  void max_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                   const Tensor& argmax, GradSlot dx) override {
    if (dy.dtype() != DType::f32) return reference_->max_pool_dx(stream, spec, dy, argmax, dx);
    stream.submit([=] {
      max_pool_backward(spec, dy.data<float>(), argmax.data<int32_t>(), dx.into.data<float>(),
                        dx.accumulate);
    });
  }

  void avg_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y) override {
    if (x.dtype() != DType::f32) return reference_->avg_pool(stream, spec, x, y);
    stream.submit([=] { avg_pool_forward(spec, x.data<float>(), y.data<float>()); });
  }

  void avg_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                   GradSlot dx) override {
    if (dy.dtype() != DType::f32) return reference_->avg_pool_dx(stream, spec, dy, dx);
    stream.submit(
        [=] { avg_pool_backward(spec, dy.data<float>(), dx.into.data<float>(), dx.accumulate); });
  }

  void batch_norm(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                  const Tensor& gamma, const Tensor& beta, const Tensor* residual, double momentum,
                  Tensor& running_mean, Tensor& running_var, Tensor& mean, Tensor& inv_std,
                  Tensor& y) override {
    if (x.dtype() != DType::f32)
      return reference_->batch_norm(stream, spec, x, gamma, beta, residual, momentum, running_mean,
                                    running_var, mean, inv_std, y);
    stream.submit([=, this, added = residual ? *residual : Tensor()] {
      float* scratch = batch_norm_workspace(spec);
      float* variance = inv_std.data<float>();  // until it is inverted below
      batch_norm_moments(spec, x.data<float>(), mean.data<float>(), variance, scratch);
      const double unbiased = static_cast<double>(spec.rows) / static_cast<double>(spec.rows - 1);
      for (int64_t c = 0; c < spec.channels; ++c) {
        move_towards(mean.data<float>()[c], momentum, running_mean.data<float>()[c]);
        move_towards(variance[c] * unbiased, momentum, running_var.data<float>()[c]);
        inv_std.data<float>()[c] = inverse_deviation(variance[c], spec.epsilon);
      }
      batch_norm_apply(
          spec, x.data<float>(), spec.residual ? added.data<float>() : nullptr,
          {mean.data<float>(), inv_std.data<float>(), gamma.data<float>(), beta.data<float>()},
          y.data<float>(), scratch);
    });
  }

  void batch_norm_eval(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                       const Tensor& gamma, const Tensor& beta, const Tensor* residual,
                       const Tensor& running_mean, const Tensor& running_var, Tensor& y) override {
    if (x.dtype() != DType::f32)
      return reference_->batch_norm_eval(stream, spec, x, gamma, beta, residual, running_mean,
                                         running_var, y);
    stream.submit([=, this, added = residual ? *residual : Tensor()] {
      float* inv_std = batch_norm_workspace(spec);
      for (int64_t c = 0; c < spec.channels; ++c)
        inv_std[c] = inverse_deviation(running_var.data<float>()[c], spec.epsilon);
      batch_norm_apply(
          spec, x.data<float>(), spec.residual ? added.data<float>() : nullptr,
          {running_mean.data<float>(), inv_std, gamma.data<float>(), beta.data<float>()},
          y.data<float>(), inv_std + spec.channels);
    });
  }

  void batch_norm_dx(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                     const Tensor& y, const Tensor& dy, const Tensor& gamma, const Tensor& mean,
                     const Tensor& inv_std, GradSlot* dx, GradSlot* d_residual, GradSlot* d_gamma,
                     GradSlot* d_beta) override {
    if (x.dtype() != DType::f32)
      return reference_->batch_norm_dx(stream, spec, x, y, dy, gamma, mean, inv_std, dx, d_residual,
                                       d_gamma, d_beta);
    stream.submit([=, this, dx_slot = slot_or_none(dx),
                   residual_slot = slot_or_none(spec.residual ? d_residual : nullptr),
                   gamma_slot = slot_or_none(d_gamma), beta_slot = slot_or_none(d_beta)] {
      const BatchNormBackward arguments{
          x.data<float>(),       spec.relu ? y.data<float>() : nullptr,
          dy.data<float>(),      gamma.data<float>(),
          mean.data<float>(),    inv_std.data<float>(),
          target_of(dx_slot),    target_of(residual_slot),
          target_of(gamma_slot), target_of(beta_slot)};
      batch_norm_backward(spec, arguments, batch_norm_workspace(spec));
    });
  }

 private:
  struct CachedConv {
    ConvPass pass;
    ConvSpec spec;
    int threads;  // a primitive is made for a number of threads
    std::unique_ptr<OnednnConv> conv;
  };

  OnednnConv& find_conv(ConvPass pass, const ConvSpec& spec) {
    const int threads = omp_get_max_threads();
    for (const CachedConv& cached : convs_) {
      if (cached.pass == pass && cached.spec == spec && cached.threads == threads)
        return *cached.conv;
    }
    convs_.push_back({pass, spec, threads, std::make_unique<OnednnConv>(engine_, pass, spec)});
    return *convs_.back().conv;
  }

  void submit_conv(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
                   const Tensor& second, const GradSlot& result) {
    stream.submit([=, this] {
      checked(pass, spec, [&] {
        OnednnConv& conv = find_conv(pass, spec);
        conv.run(queue_, first.data<float>(), second.data<float>(), result.into.data<float>(),
                 result.accumulate, workspace(conv.workspace_bytes(result.accumulate)));
        queue_.wait();
      });
    });
  }

  /// At least that many bytes, valid until the next call: kept, and replaced only by a larger one.
  std::byte* workspace(int64_t bytes) {
    if (!workspace_.defined() || workspace_.bytes() < bytes) {
      workspace_ = {};
      workspace_ = Tensor({bytes}, DType::u8, pool_, workspace_range_);
    }
    return workspace_.raw();
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
  // a range of the pool for itself: growing leaves no hole among the activations
  const int64_t workspace_range_ = Stream::immediate().id();
  std::unique_ptr<Backend> reference_;
  dnnl::engine engine_;
  dnnl::stream queue_;
  std::vector<CachedConv> convs_;
  Tensor workspace_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(MemoryPool& pool, const Stream& stream) {
  return std::make_unique<OnednnBackend>(pool, stream.id());
}

}  // namespace wisp
