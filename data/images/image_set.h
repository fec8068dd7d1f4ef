// Labelled images in memory. A value; any thread may read it.
#pragma once

#include <string>

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace wisp {

struct ImageSet {
  std::string name;  // for messages: "cifar10 train"
  Tensor images;     // (N, H, W, C) u8
  Tensor labels;     // (N) i32 in [0, classes)
  int classes = 0;

  int64_t count() const { return images.shape()[0]; }
  /// A view of one image, (H, W, C).
  Tensor image(int64_t sample) const {
    const Shape& shape = images.shape();
    return images.rows(sample, sample + 1).reshape({shape[1], shape[2], shape[3]});
  }
  /// Throws Error if the shapes do not match, or if a label is no class.
  void check() const {
    WISP_CHECK(images.defined() && images.dtype() == DType::u8 && images.shape().rank() == 4, name,
               ": images are ", images.shape(), " ", name_of(images.dtype()),
               ", expected (N, H, W, C) u8");
    WISP_CHECK(labels.defined() && labels.dtype() == DType::i32 && labels.shape() == Shape{count()},
               name, ": labels are ", labels.shape(), " ", name_of(labels.dtype()), ", expected (",
               count(), ") i32");
    WISP_CHECK(classes > 0, name, ": ", classes, " classes, expected at least 1");
    for (int64_t i = 0; i < count(); ++i) {
      const int32_t label = labels.data<int32_t>()[i];
      WISP_CHECK(label >= 0 && label < classes, name, ": label ", label, " of sample ", i,
                 ", expected 0 to ", classes - 1);
    }
  }
};

}  // namespace wisp
