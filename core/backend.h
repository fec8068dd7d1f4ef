// The interface to vendor libraries. A context has one backend, which caches the library's objects;
// only the context's thread may use it. Images are N, H, W, C; convolution weights are O, kH, kW,
// I/groups. The activations of a call and their gradients have one type. Weights, statistics and
// their gradients have wide_of() that type. With bf16 activations, convolutions and products round
// their factors to bf16, add in f32 and round the result once; everything else is computed in f32.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/autograd.h"
#include "core/convolutions.h"
#include "core/norms.h"
#include "core/pools.h"
#include "core/products.h"
#include "core/real_fft.h"
#include "core/rnn.h"

namespace wisp {

/// Number of library objects that a backend caches by shape. All objects of a step must fit, or
/// each step makes them anew. A convolution needs three objects. ResNet-50 has 68 convolutions of
/// different shapes, DenseNet-121 about 200. The smaller last batch of an epoch needs as many
/// again, an evaluation fewer. An object of oneDNN takes 50 to 125 kB and 0.4 to 3 ms to make, so
/// the cache has at most 64 MB.
constexpr int64_t kMostKeptObjects = 512;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  /// Everything that the bits of results depend on: library, version, instruction set.
  virtual std::string numerics() const { return name(); }
  /// Bytes that the backend holds from the pool for temporaries: the needs of the largest op so
  /// far.
  virtual int64_t workspace_bytes() const { return 0; }
  /// Number of library objects in the cache, at most kMostKeptObjects. The least recently used are
  /// dropped. Read between ops.
  virtual int64_t kept_objects() const { return 0; }
  /// Whether weights stored in bf16 save work beside bf16 activations. Only such a backend accepts
  /// bf16 weights in conv2d(), conv2d_dx() and the recurrent layers; gemm() always accepts both.
  virtual bool reads_rounded_weights() const { return false; }

  /// Writes op(A) · op(B) to C, or adds it.
  virtual void gemm(const Stream&, const GemmSpec&, const Tensor& a, const Tensor& b,
                    GradSlot c) = 0;
  /// gemm() into a new C, with `bias` (n) added to each row before C is rounded, which saves a pass
  /// over C. Returns false and does nothing if the library has no such product.
  virtual bool gemm_bias(const Stream&, const GemmSpec&, const Tensor& /*a*/, const Tensor& /*b*/,
                         const Tensor& /*bias*/, const Tensor& /*c*/) {
    return false;
  }

  /// A convolution, and its gradients with respect to x and w.
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
  /// Mean over the window. Padding counts as zeros, so the divisor is kernel².
  virtual void avg_pool(const Stream&, const PoolSpec&, const Tensor& x, Tensor& y) = 0;
  virtual void avg_pool_dx(const Stream&, const PoolSpec&, const Tensor& dy, GradSlot dx) = 0;

  /// Bytes of `mask`, in which batch_norm() marks the elements that ReLU passed on. 0 if there is
  /// no ReLU, or the backend keeps no mask.
  virtual int64_t relu_mask_bytes(const BatchNormSpec&, DType /*activations*/) const { return 0; }
  /// Batch normalisation in training, by batch statistics. `mean` and `inv_std` (C) are kept for
  /// the backward pass. The running statistics move by `momentum` towards the batch's; the running
  /// variance has divisor rows - 1. `mask` is (relu_mask_bytes) u8, or undefined if that is 0.
  virtual void batch_norm(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& gamma,
                          const Tensor& beta, const Tensor* residual, double momentum,
                          Tensor& running_mean, Tensor& running_var, Tensor& mean, Tensor& inv_std,
                          Tensor& y, Tensor& mask) = 0;
  /// Batch normalisation in an evaluation, by running statistics.
  virtual void batch_norm_eval(const Stream&, const BatchNormSpec&, const Tensor& x,
                               const Tensor& gamma, const Tensor& beta, const Tensor* residual,
                               const Tensor& running_mean, const Tensor& running_var,
                               Tensor& y) = 0;
  /// A null slot means that its gradient is not wanted. `passed` is the mask, or y if there is no
  /// mask. It is read only if spec.relu is set, d_residual written only if spec.residual is.
  virtual void batch_norm_dx(const Stream&, const BatchNormSpec&, const Tensor& x,
                             const Tensor& passed, const Tensor& dy, const Tensor& gamma,
                             const Tensor& mean, const Tensor& inv_std, GradSlot* dx,
                             GradSlot* d_residual, GradSlot* d_gamma, GradSlot* d_beta) = 0;

  /// Bytes of `saved`, which rnn() fills for the backward pass. rnn_dx() also leaves in it the data
  /// for rnn_dw().
  virtual int64_t rnn_saved_bytes(const RnnSpec&, DType activations) const = 0;
  /// `weights` has one entry per direction. `after` gets each sequence's state after its last
  /// position (second direction: after its first). `saved` is (rnn_saved_bytes) u8, or undefined if
  /// no backward pass follows.
  virtual void rnn(const Stream&, const RnnSpec&, const Tensor& x,
                   std::span<const RnnWeights> weights, const RnnState& before, Tensor& y,
                   RnnState& after, Tensor& saved) = 0;
  /// `dx` may be null. No gradient reaches the states.
  virtual void rnn_dx(const Stream&, const RnnSpec&, const Tensor& y, const Tensor& dy,
                      std::span<const RnnWeights> weights, const RnnState& before, Tensor& saved,
                      GradSlot* dx) = 0;
  /// Call it after rnn_dx(), which may have had a null dx.
  virtual void rnn_dw(const Stream&, const RnnSpec&, const Tensor& x, const Tensor& y,
                      const RnnState& before, const Tensor& saved,
                      std::span<const RnnGradients> gradients) = 0;

  virtual RealFft& fft() = 0;
};

/// Plain loops, in every type on every machine. Tests compare other backends with them, and CPUs
/// without a library run on them. An emulated device runs the same loops as its library.
std::unique_ptr<Backend> make_reference_backend(MemoryPool& pool, const Stream& stream);

/// Options of a GPU's libraries that trade accuracy or repeatability for speed. CPU libraries, and
/// so emulated devices, ignore them.
struct GpuMath {
  bool tf32 = false;          // products of f32 round their factors to 10 bits
  bool deterministic = true;  // the same bits in each run
};

/// The fastest backend of this build for the stream's device. The CPU has oneDNN if it was found,
/// else the reference; an emulated device has the CPU's.
std::unique_ptr<Backend> make_backend(MemoryPool& pool, const Stream& stream,
                                      const GpuMath& math = {});

// Implementations behind the two functions above; a build has one of each.
std::unique_ptr<Backend> make_cpu_reference_backend(MemoryPool& pool, int64_t stream_id);
std::unique_ptr<Backend> make_cpu_backend(MemoryPool& pool, int64_t stream_id);
std::unique_ptr<Backend> make_device_backend(MemoryPool& pool, const Stream& stream, bool fastest,
                                             const GpuMath& math);

/// Names what this program lacks to train on CUDA devices, and the remedy. Empty if it lacks
/// nothing.
std::string missing_for_cuda();

/// Names what this machine's CPU lacks for make_backend()'s backend to compute with activations of
/// type `compute`. Empty if it lacks nothing.
std::string missing_for(DType compute);

}  // namespace wisp
