// Convolutions of images, and the backend's object for them (core/backend.h). Images are N, H, W,
// C, weights O, kH, kW, I/groups.
#pragma once

#include "core/autograd.h"
#include "core/tensor/axes.h"

namespace wisp {

struct ConvSpec {
  int64_t batch = 0, height = 0, width = 0, in_channels = 0, out_channels = 0;
  Axes kernel = 1, stride = 1, pad = 0, dilation = 1;
  int64_t groups = 1;

  /// Extent of a dilated window, in positions.
  Axes reach() const { return {dilation.h * (kernel.h - 1) + 1, dilation.w * (kernel.w - 1) + 1}; }
  int64_t out_height() const { return (height + 2 * pad.h - reach().h) / stride.h + 1; }
  int64_t out_width() const { return (width + 2 * pad.w - reach().w) / stride.w + 1; }
  bool operator==(const ConvSpec&) const = default;
};

class Convolutions {
 public:
  virtual ~Convolutions() = default;
  /// A convolution, and its gradients with respect to x and w.
  virtual void conv2d(const Stream&, const ConvSpec&, const Tensor& x, const Tensor& w,
                      Tensor& y) = 0;
  virtual void conv2d_dx(const Stream&, const ConvSpec&, const Tensor& dy, const Tensor& w,
                         GradSlot dx) = 0;
  virtual void conv2d_dw(const Stream&, const ConvSpec&, const Tensor& x, const Tensor& dy,
                         GradSlot dw) = 0;
};

}  // namespace wisp
