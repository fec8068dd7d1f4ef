#include "core/facts.h"

#include "core/base/error.h"

namespace wisp {

const Shape& Facts::image(const std::string& model) const {
  WISP_CHECK(inputs.size() == 1, model, ": the data's samples have ", inputs.size(),
             " parts, expected an image");
  const Shape& sample = inputs[0].sample;
  WISP_CHECK(sample.rank() == 3, model, ": the data's samples have shape ", sample,
             ", expected images (H, W, C)");
  return sample;
}

}  // namespace wisp
