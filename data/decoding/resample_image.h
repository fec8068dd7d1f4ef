// Scaling of pictures by antialiasing filters, with the bits of Pillow's Image.resize. Any thread.
#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "data/decoding/image_view.h"

namespace wisp {

/// The kernel of a scaling filter: a triangle, or Keys' cubic with a = -1/2. When scaling down, the
/// kernel is as many times wider as the picture becomes smaller.
enum class Filter { bilinear, bicubic };
/// Throws Error for another name than bilinear and bicubic.
Filter filter_named(const std::string& name);

/// The pixels of the picture that resample_image() reads for `view`. Never empty.
Region footprint(const View& view, Filter filter);

/// The window of `view`, (window.height, window.width, 3) u8: the pixels that it has in the whole
/// scaled source. `part`, (at.height, at.width, 3) u8, is region `at` of the picture, which holds
/// the view's footprint. Throws Error for another tensor or region, and for a view of no pixels.
///
/// Weights are rounded to 22 bits after the point. Columns are scaled first, and rounded to u8.
/// Source: Pillow's Image.resize before version 13, which scales rows first for some pictures.
Tensor resample_image(const Tensor& part, const Region& at, const View& view, Filter filter);

}  // namespace wisp
