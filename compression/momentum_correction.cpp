#include "compression/momentum_correction.h"

#include "compression/slices.h"
#include "core/train/norm.h"

namespace wisp {

void LocalMomentum::check() const {
  WISP_CHECK(0.0 <= momentum && momentum < 1.0, "a worker's own momentum is ", momentum,
             ", expected 0 <= momentum < 1");
  WISP_CHECK(weight_decay >= 0.0, "a worker's own weight decay is ", weight_decay,
             ", expected 0 or more");
}

MomentumCorrection LocalMomentum::correct(const Unit& unit, const Field& field,
                                          const StepInfo& info) const {
  return {unit.gradient.data<float>(),
          unit.weight.data<float>(),
          static_cast<float>(field.decay ? weight_decay / info.summands : 0.0),
          static_cast<float>(momentum),
          nesterov,
          unit.momentum.data<float>()};
}

void scale_momentum(Context& context, const Unit& unit, double factor) {
  each_slice(unit.spec, [&](size_t, const Slice& slice, int64_t) {
    scale(context.stream, unit.momentum.slice(slice.offset, {slice.numel}), factor);
  });
}

void unscale_momentum(Context& context, const Unit& unit, double factor) {
  if (factor != 0.0) scale_momentum(context, unit, 1.0 / factor);
}

}  // namespace wisp
