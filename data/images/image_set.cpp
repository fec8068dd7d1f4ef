#include "data/images/image_set.h"

#include "core/base/error.h"

namespace wisp {

Tensor ImageSet::image(int64_t sample) const {
  const Shape& shape = images.shape();
  return images.rows(sample, sample + 1).reshape({shape[1], shape[2], shape[3]});
}

void ImageSet::check() const {
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

}  // namespace wisp
