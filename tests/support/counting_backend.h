// A backend that counts the convolution gradients and transforms requested of it. The counts are
// for one thread.
#pragma once

#include "core/backend.h"
#include "core/convolutions.h"
#include "core/real_fft.h"

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

class CountingBackend final : public Backend, Convolutions {
 public:
  explicit CountingBackend(Backend& inner) : transforms(inner.fft()), inner_(inner) {}

  int conv_dx = 0, conv_dw = 0;
  CountingFft transforms;

  std::string name() const override { return inner_.name(); }
  Products& products() override { return inner_.products(); }
  Convolutions& convolutions() override { return *this; }
  Pools& pools() override { return inner_.pools(); }
  Norms& norms() override { return inner_.norms(); }
  RecurrentLayers& recurrent() override { return inner_.recurrent(); }
  RealFft& fft() override { return transforms; }

 private:
  void convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
                const Tensor& second, const GradSlot& result) override {
    if (pass == ConvPass::dx) ++conv_dx;
    if (pass == ConvPass::dw) ++conv_dw;
    inner_.convolutions().convolve(stream, pass, spec, first, second, result);
  }

  Backend& inner_;
};

}  // namespace wisp
