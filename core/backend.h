// What vendor libraries do. One object per context, used by its thread only (it caches the
// library's objects). Images are N, H, W, C; convolution weights O, kH, kW, I/groups. The
// activations of a call and their gradients have one type; weights, statistics and their gradients
// have the wide_of() it. Beside bf16, convolutions and products round their factors to bf16, add in
// f32 and round the result once; everything else is computed in f32.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/autograd.h"
#include "core/real_fft.h"
#include "core/rnn.h"
#include "core/tensor/axes.h"

namespace wisp {

struct ConvSpec {
  int64_t batch = 0, height = 0, width = 0, in_channels = 0, out_channels = 0;
  Axes kernel = 1, stride = 1, pad = 0, dilation = 1;
  int64_t groups = 1;

  /// Positions from a window's first tap to its last.
  Axes reach() const { return {dilation.h * (kernel.h - 1) + 1, dilation.w * (kernel.w - 1) + 1}; }
  int64_t out_height() const { return (height + 2 * pad.h - reach().h) / stride.h + 1; }
  int64_t out_width() const { return (width + 2 * pad.w - reach().w) / stride.w + 1; }
  bool operator==(const ConvSpec&) const = default;
};

/// C (m, n) = op(A) (m, k) · op(B) (k, n); A is stored (k, m) if transposed, B (n, k). Row-major.
/// If A is bf16, B and C may be bf16 or f32.
struct GemmSpec {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool operator==(const GemmSpec&) const = default;
};

struct PoolSpec {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int64_t kernel = 1, stride = 1, pad = 0;

  int64_t out_height() const { return (height + 2 * pad - kernel) / stride + 1; }
  int64_t out_width() const { return (width + 2 * pad - kernel) / stride + 1; }
};

/// Rows are all positions of all images, (N·H·W, C).
struct BatchNormSpec {
  int64_t rows = 0, channels = 0;
  double epsilon = 1e-5;
  bool relu = false;      // y = max(0, ·) after scale, shift and residual
  bool residual = false;  // a tensor of x's shape is added before the ReLU
};

/// How many objects of its library a backend keeps by shape: what a step needs must fit, or each
/// step makes all of it anew. A convolution needs three; ResNet-50 has 68 of different shapes,
/// DenseNet-121 about 200, and as many for the last batch of an epoch, fewer for an evaluation's.
/// oneDNN's take 50 to 125 kB and 0.4 to 3 ms to make, so these are at most 64 MB.
constexpr int64_t kMostKeptObjects = 512;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  /// What its results' bits depend on: library, version, instruction set.
  virtual std::string numerics() const { return name(); }
  /// What the backend holds of the pool for its ops' temporaries: what the largest op so far
  /// needed.
  virtual int64_t workspace_bytes() const { return 0; }
  /// Objects of the library kept now, at most kMostKeptObjects: those used last. Read between ops.
  virtual int64_t kept_objects() const { return 0; }
  /// Whether weights that are bf16 already spare it work beside bf16 activations. Only then may
  /// they be so in conv2d(), conv2d_dx() and the recurrent layers; gemm() takes both.
  virtual bool reads_rounded_weights() const { return false; }

  virtual void gemm(const Stream&, const GemmSpec&, const Tensor& a, const Tensor& b,
                    GradSlot c) = 0;
  /// The same into a fresh C, with `bias` (n) added to each row before C is rounded: what would be
  /// a pass over C. False, and nothing is done, where the library has no such product.
  virtual bool gemm_bias(const Stream&, const GemmSpec&, const Tensor& /*a*/, const Tensor& /*b*/,
                         const Tensor& /*bias*/, const Tensor& /*c*/) {
    return false;
  }

  virtual void conv2d(const Stream&, const ConvSpec&, const Tensor& x, const Tensor& w,
                      Tensor& y) = 0;
  virtual void conv2d_dx(const Stream&, const ConvSpec&, const Tensor& dy, const Tensor& w,
                         GradSlot dx) = 0;
  virtual void conv2d_dw(const Stream&, const ConvSpec&, const Tensor& x, const Tensor& dy,
                         GradSlot dw) = 0;

  /// `argmax` (i32, y's shape) gets the flat position in x of each maximum. Padding never wins.
  virtual void max_pool(const Stream&, const PoolSpec&, const Tensor& x, Tensor& y,
                        Tensor& argmax) = 0;
  virtual void max_pool_dx(const Stream&, const PoolSpec&, const Tensor& dy, const Tensor& argmax,
                           GradSlot dx) = 0;
  /// Mean over the window; positions in the padding count as zeros (divisor kernel²).
  virtual void avg_pool(const Stream&, const PoolSpec&, const Tensor& x, Tensor& y) = 0;
  virtual void avg_pool_dx(const Stream&, const PoolSpec&, const Tensor& dy, GradSlot dx) = 0;

  /// Training: batch statistics; `mean` and `inv_std` (C) are kept for the backward pass, and the
  /// running statistics move by `momentum` towards the batch's (variance with divisor rows - 1).
  virtual void batch_norm(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& gamma,
                          const Tensor& beta, const Tensor* residual, double momentum,
                          Tensor& running_mean, Tensor& running_var, Tensor& mean, Tensor& inv_std,
                          Tensor& y) = 0;
  /// Evaluation: running statistics.
  virtual void batch_norm_eval(const Stream&, const BatchNormSpec&, const Tensor& x,
                               const Tensor& gamma, const Tensor& beta, const Tensor* residual,
                               const Tensor& running_mean, const Tensor& running_var,
                               Tensor& y) = 0;
  /// Slots may be null (gradient not wanted). `y` is read only if spec.relu; d_residual only if
  /// spec.residual.
  virtual void batch_norm_dx(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& y,
                             const Tensor& dy, const Tensor& gamma, const Tensor& mean,
                             const Tensor& inv_std, GradSlot* dx, GradSlot* d_residual,
                             GradSlot* d_gamma, GradSlot* d_beta) = 0;

  /// Bytes that rnn() keeps for the backward pass, in which rnn_dx() leaves what rnn_dw() needs.
  virtual int64_t rnn_saved_bytes(const RnnSpec&, DType activations) const = 0;
  /// `weights` by direction. `after` gets each sequence's state behind its last position (of the
  /// second direction: its first). `saved` (rnn_saved_bytes) u8 is undefined if there will be no
  /// backward pass.
  virtual void rnn(const Stream&, const RnnSpec&, const Tensor& x,
                   std::span<const RnnWeights> weights, const RnnState& before, Tensor& y,
                   RnnState& after, Tensor& saved) = 0;
  /// `dx` may be null. No gradient reaches the states.
  virtual void rnn_dx(const Stream&, const RnnSpec&, const Tensor& y, const Tensor& dy,
                      std::span<const RnnWeights> weights, const RnnState& before, Tensor& saved,
                      GradSlot* dx) = 0;
  /// After rnn_dx(), whether that had a dx or not.
  virtual void rnn_dw(const Stream&, const RnnSpec&, const Tensor& x, const Tensor& y,
                      const RnnState& before, const Tensor& saved,
                      std::span<const RnnGradients> gradients) = 0;

  virtual RealFft& fft() = 0;
};

/// Plain loops, in every type on every machine: the oracle of the others, and the CPU path where no
/// library is installed. On an emulated device the same loops are its library.
std::unique_ptr<Backend> make_reference_backend(MemoryPool& pool, const Stream& stream);

/// What a GPU's libraries may do to be faster; the CPU's, and so an emulated device's, do neither.
struct GpuMath {
  bool tf32 = false;          // products of f32 round their factors to 10 bits
  bool deterministic = true;  // the same bits each time
};

/// The fastest backend this build has for the stream's device: on the CPU oneDNN if it was found,
/// else the reference; on an emulated device what the CPU has.
std::unique_ptr<Backend> make_backend(MemoryPool& pool, const Stream& stream,
                                      const GpuMath& math = {});

// What the two choose from. There is one implementation of each in a build.
std::unique_ptr<Backend> make_cpu_reference_backend(MemoryPool& pool, int64_t stream_id);
std::unique_ptr<Backend> make_cpu_backend(MemoryPool& pool, int64_t stream_id);
std::unique_ptr<Backend> make_device_backend(MemoryPool& pool, const Stream& stream, bool fastest,
                                             const GpuMath& math);

/// What this program lacks to train on CUDA devices, and what would help; empty if nothing.
std::string missing_for_cuda();

/// What this machine's CPU lacks for make_backend()'s backend to compute with activations of
/// `compute`; empty if nothing.
std::string missing_for(DType compute);

}  // namespace wisp
