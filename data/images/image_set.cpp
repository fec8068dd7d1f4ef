#include "data/images/image_set.h"

#include "core/error.h"

namespace wisp {

void ImageSet::check() const {
  WISP_CHECK(images.defined() && images.dtype() == DType::u8 && images.shape().rank() == 4, name,
             ": images are ", images.shape(), " ", name_of(images.dtype()),
             ", expected (N, H, W, C) u8");
  WISP_CHECK(labels.defined() && labels.dtype() == DType::i32 && labels.shape() == Shape{count()},
             name, ": labels are ", labels.shape(), " ", name_of(labels.dtype()), ", expected (",
             count(), ") i32");
  const auto channels = static_cast<size_t>(images.shape()[3]);
  WISP_CHECK(mean.size() == channels && deviation.size() == channels, name, ": ", mean.size(),
             " means and ", deviation.size(), " deviations for ", channels, " channels");
  for (const double d : deviation)
    WISP_CHECK(d > 0, name, ": a channel's deviation is ", d, ", expected more than 0");
  WISP_CHECK(classes > 0, name, ": ", classes, " classes, expected at least 1");
  for (int64_t i = 0; i < count(); ++i) {
    const int32_t label = labels.data<int32_t>()[i];
    WISP_CHECK(label >= 0 && label < classes, name, ": label ", label, " of sample ", i,
               ", expected 0 to ", classes - 1);
  }
}

}  // namespace wisp
