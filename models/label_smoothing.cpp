#include "models/label_smoothing.h"

#include "core/base/error.h"

namespace wisp {

double bind_label_smoothing(Config& config) {
  double share = 0.0;
  config.bind("model.label_smoothing", share,
              "label smoothing: share of the target spread over all classes, in [0, 1)");
  WISP_CHECK(0.0 <= share && share < 1.0, config.where("model.label_smoothing"),
             ": model.label_smoothing is ", share, ", expected a number in [0, 1)");
  return share;
}

}  // namespace wisp
