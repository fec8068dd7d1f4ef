// Convolutions of images, and the backend's object for them (core/backend.h). Images are N, H, W,
// C, weights O, kH, kW, I/groups.
#pragma once

#include <string>

#include "core/autograd.h"
#include "core/base/error.h"
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

/// A convolution, y from (x, w), or one of its gradients: dx from (dy, w), dw from (x, dy).
enum class ConvPass { forward, dx, dw };

inline const char* name_of(ConvPass pass) {
  if (pass == ConvPass::forward) return "conv2d";
  return pass == ConvPass::dx ? "conv2d_dx" : "conv2d_dw";
}

/// The pass and the shapes, for messages.
inline std::string described(ConvPass pass, const ConvSpec& s) {
  return concat(name_of(pass), ": images (", s.batch, ", ", s.height, ", ", s.width, ", ",
                s.in_channels, "), weight (", s.out_channels, ", ", s.kernel.h, ", ", s.kernel.w,
                ", ", s.in_channels / s.groups, ")");
}

class Convolutions {
 public:
  virtual ~Convolutions() = default;
  /// Computes the pass from its two factors. `result.accumulate` is false for forward.
  virtual void convolve(const Stream&, ConvPass, const ConvSpec&, const Tensor& first,
                        const Tensor& second, const GradSlot& result) = 0;
};

}  // namespace wisp
