// A backend of our kernels over another backend's library calls. It runs the kernels without a GPU:
// on the CPU, and on an emulated device.
#pragma once

#include <memory>

#include "core/backend.h"
#include "core/kernels/batch_norm.h"
#include "core/kernels/direct_conv.h"
#include "core/kernels/pool.h"
#include "core/kernels/rnn.h"
#include "core/ops/bias.h"

namespace wisp {

class KernelsOver final : public Backend, Products, Convolutions {
 public:
  KernelsOver(MemoryPool& pool, const Stream& stream)
      : library_(make_reference_backend(pool, stream)), norms_(pool), recurrent_(*this, pool) {}

  std::string name() const override { return concat("kernels over ", library_->name()); }
  bool reads_rounded_weights() const override { return true; }
  Products& products() override { return *this; }
  Convolutions& convolutions() override { return *this; }
  Pools& pools() override { return pools_; }
  Norms& norms() override { return norms_; }
  RecurrentLayers& recurrent() override { return recurrent_; }
  RealFft& fft() override { return library_->fft(); }

 private:
  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            GradSlot c) override {
    library_->products().gemm(stream, spec, a, b, c);
  }
  /// Like cuBLASLt, it refuses a bias of another type than C's.
  bool gemm_bias(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
                 const Tensor& bias, const Tensor& c) override {
    if (bias.dtype() != c.dtype()) return false;
    library_->products().gemm(stream, spec, a, b, {c, false});
    add_bias(stream, bias, c);
    return true;
  }
  void convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
                const Tensor& second, const GradSlot& result) override {
    if (first.dtype() == DType::f64)
      return direct_convolve(stream, pass, spec, first, second, result);
    library_->convolutions().convolve(stream, pass, spec, first, second, result);
  }

  std::unique_ptr<Backend> library_;
  KernelPools pools_;
  KernelNorms norms_;
  KernelRecurrentLayers recurrent_;
};

/// The backend of a test: the reference, the build's best backend, or our kernels over the
/// reference's products.
enum class Library { reference, fastest, kernels };

inline std::unique_ptr<Backend> make_backend_of(Library library, MemoryPool& pool,
                                                const Stream& stream) {
  if (library == Library::kernels) return std::make_unique<KernelsOver>(pool, stream);
  return library == Library::fastest ? make_backend(pool, stream)
                                     : make_reference_backend(pool, stream);
}

}  // namespace wisp
