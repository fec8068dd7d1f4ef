// A backend that counts the convolution gradients and transforms requested of it. The counts are
// for one thread.
#pragma once

#include "core/backend.h"

namespace wisp {

class CountingFft final : public RealFft {
 public:
  explicit CountingFft(RealFft& inner) : inner_(inner) {}

  int forwards = 0, inverses = 0;

  std::string numerics() const override { return inner_.numerics(); }
  void forward(const Stream& stream, int64_t n, const float* x, float* spectrum) override {
    ++forwards;
    inner_.forward(stream, n, x, spectrum);
  }
  void inverse(const Stream& stream, int64_t n, float* spectrum, float* x) override {
    ++inverses;
    inner_.inverse(stream, n, spectrum, x);
  }

 private:
  RealFft& inner_;
};

class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(Backend& inner) : transforms(inner.fft()), inner_(inner) {}

  int conv_dx = 0, conv_dw = 0;
  CountingFft transforms;

  std::string name() const override { return inner_.name(); }
  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            GradSlot c) override {
    inner_.gemm(stream, spec, a, b, c);
  }
  void conv2d(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& w,
              Tensor& y) override {
    inner_.conv2d(stream, spec, x, w, y);
  }
  void conv2d_dx(const Stream& stream, const ConvSpec& spec, const Tensor& dy, const Tensor& w,
                 GradSlot dx) override {
    ++conv_dx;
    inner_.conv2d_dx(stream, spec, dy, w, dx);
  }
  void conv2d_dw(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& dy,
                 GradSlot dw) override {
    ++conv_dw;
    inner_.conv2d_dw(stream, spec, x, dy, dw);
  }
  void max_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y,
                Tensor& argmax) override {
    inner_.max_pool(stream, spec, x, y, argmax);
  }
  void max_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                   const Tensor& argmax, GradSlot dx) override {
    inner_.max_pool_dx(stream, spec, dy, argmax, dx);
  }
  void avg_pool(const Stream& stream, const PoolSpec& spec, const Tensor& x, Tensor& y) override {
    inner_.avg_pool(stream, spec, x, y);
  }
  void avg_pool_dx(const Stream& stream, const PoolSpec& spec, const Tensor& dy,
                   GradSlot dx) override {
    inner_.avg_pool_dx(stream, spec, dy, dx);
  }
  int64_t relu_mask_bytes(const BatchNormSpec& spec, DType activations) const override {
    return inner_.relu_mask_bytes(spec, activations);
  }
  void batch_norm(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                  const Tensor& gamma, const Tensor& beta, const Tensor* residual, double momentum,
                  Tensor& running_mean, Tensor& running_var, Tensor& mean, Tensor& inv_std,
                  Tensor& y, Tensor& mask) override {
    inner_.batch_norm(stream, spec, x, gamma, beta, residual, momentum, running_mean, running_var,
                      mean, inv_std, y, mask);
  }
  void batch_norm_eval(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                       const Tensor& gamma, const Tensor& beta, const Tensor* residual,
                       const Tensor& running_mean, const Tensor& running_var, Tensor& y) override {
    inner_.batch_norm_eval(stream, spec, x, gamma, beta, residual, running_mean, running_var, y);
  }
  void batch_norm_dx(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                     const Tensor& passed, const Tensor& dy, const Tensor& gamma,
                     const Tensor& mean, const Tensor& inv_std, GradSlot* dx, GradSlot* d_residual,
                     GradSlot* d_gamma, GradSlot* d_beta) override {
    inner_.batch_norm_dx(stream, spec, x, passed, dy, gamma, mean, inv_std, dx, d_residual, d_gamma,
                         d_beta);
  }
  int64_t rnn_saved_bytes(const RnnSpec& spec, DType activations) const override {
    return inner_.rnn_saved_bytes(spec, activations);
  }
  void rnn(const Stream& stream, const RnnSpec& spec, const Tensor& x,
           std::span<const RnnWeights> weights, const RnnState& before, Tensor& y, RnnState& after,
           Tensor& saved) override {
    inner_.rnn(stream, spec, x, weights, before, y, after, saved);
  }
  void rnn_dx(const Stream& stream, const RnnSpec& spec, const Tensor& y, const Tensor& dy,
              std::span<const RnnWeights> weights, const RnnState& before, Tensor& saved,
              GradSlot* dx) override {
    inner_.rnn_dx(stream, spec, y, dy, weights, before, saved, dx);
  }
  void rnn_dw(const Stream& stream, const RnnSpec& spec, const Tensor& x, const Tensor& y,
              const RnnState& before, const Tensor& saved,
              std::span<const RnnGradients> gradients) override {
    inner_.rnn_dw(stream, spec, x, y, before, saved, gradients);
  }
  RealFft& fft() override { return transforms; }

 private:
  Backend& inner_;
};

}  // namespace wisp
