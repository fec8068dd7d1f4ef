// Convolutions of images. Images are N, H, W, C, weights O, kH, kW, I/groups.
#pragma once

#include <cstdint>

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

}  // namespace wisp
