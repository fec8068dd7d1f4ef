// A learning-rate schedule of your own: a linear rise, then a fall by the inverse square root of
// the epoch. Source: Vaswani et al. 2017, "Attention is all you need", section 5.3, as a factor of
// the rate at the peak. The paper's first step is step 1; here it is epoch 0, whose rate is 0.
#include <cmath>
#include <memory>

#include "core/train/schedule.h"

namespace wisp::inverse_sqrt {

std::unique_ptr<Schedule> make(Config& config, double) {
  double peak = 1.0;
  config.bind("schedule.peak_epoch", peak, "epoch at which the rate is highest, above 0");
  config.expect(peak > 0.0, "schedule.peak_epoch", peak, "more than 0");
  auto schedule = std::make_unique<Schedule>();
  schedule->at = [peak](double epoch) {
    return epoch < peak ? epoch / peak : std::sqrt(peak / epoch);
  };
  schedule->rises = true;
  return schedule;
}

const ScheduleRegistration registration("inverse_sqrt", "linear rise, then 1 / sqrt(epoch)", make);

}  // namespace wisp::inverse_sqrt
