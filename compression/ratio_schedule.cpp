#include "compression/ratio_schedule.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace wisp {

RatioSchedule::RatioSchedule(Config& config) {
  constexpr double kMostEpochs = 10'000.0;  // each epoch may be a phase
  config.bind("compression.ratio", ratio_, "kept / total elements of sparse methods, in (0, 1]");
  config.bind_choice(
      "compression.warmup", warmup_,
      {{"none", Warmup::none}, {"list", Warmup::list}, {"exponential", Warmup::exponential}},
      "form of the ratio's warm-up: none, list, or exponential");
  config.bind("compression.warmup_epochs", epochs_, "length of the warm-up, in epochs, above 0");
  config.bind("compression.warmup_list", list_,
              "ratios of warmup = \"list\", spread evenly over its epochs; 1 or more: dense");

  config.expect(0.0 < ratio_ && ratio_ <= 1.0, "compression.ratio", ratio_, "0 < ratio <= 1");
  config.expect(0.0 < epochs_ && epochs_ <= kMostEpochs, "compression.warmup_epochs", epochs_,
                concat("more than 0 and at most ", kMostEpochs));
  WISP_CHECK(!list_.empty(), config.where("compression.warmup_list"),
             ": compression.warmup_list is empty, expected at least one ratio");
  for (const double ratio : list_) {
    WISP_CHECK(ratio > 0.0, config.where("compression.warmup_list"),
               ": compression.warmup_list holds ", ratio, ", expected ratios above 0");
  }
}

double RatioSchedule::at(double epoch) const {
  if (warmup_ == Warmup::none || epoch >= epochs_) return ratio_;
  if (warmup_ == Warmup::exponential) {
    return std::max(std::pow(ratio_, (std::floor(epoch) + 1.0) / (epochs_ + 1.0)), ratio_);
  }
  const double stages = static_cast<double>(list_.size());
  const auto stage = static_cast<size_t>(std::floor(epoch * stages / epochs_));
  return std::max(list_[std::min(stage, list_.size() - 1)], ratio_);
}

std::vector<double> RatioSchedule::phases() const {
  std::vector<double> starts = {0.0};
  if (warmup_ == Warmup::none) return starts;
  if (warmup_ == Warmup::list) {
    const auto stages = static_cast<double>(list_.size());
    for (size_t stage = 1; stage < list_.size(); ++stage)
      starts.push_back(static_cast<double>(stage) * epochs_ / stages);
  } else {
    for (int64_t epoch = 1; static_cast<double>(epoch) < epochs_; ++epoch)
      starts.push_back(static_cast<double>(epoch));
  }
  starts.push_back(epochs_);
  return starts;
}

}  // namespace wisp
