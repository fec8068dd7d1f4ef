#include "compression/hand_over.h"

#include "compression/slices.h"
#include "core/loops/parallel_rows.h"

namespace wisp {
namespace {

struct HandOver {
  float* gradient;
  float* residual;
  float factor;
  WISP_HD void operator()(int64_t i) const {
    gradient[i] += factor * residual[i];
    residual[i] = 0.0f;
  }
};

}  // namespace

void hand_over(Context& context, const Unit& unit, const Tensor& residual, double factor) {
  parallel_for_ranges(
      context.stream, ranges_of(unit.spec),
      HandOver{unit.gradient.data<float>(), residual.data<float>(), static_cast<float>(factor)});
}

}  // namespace wisp
