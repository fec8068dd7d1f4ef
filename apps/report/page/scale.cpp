#include "apps/report/page/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace wisp {
namespace {

// Bounds within which differences and ratios neither overflow nor vanish.
constexpr double kMost = 1e300, kLeast = 1e-290, kMostLog = 1e150;
constexpr double kFar = 1e6;          // ranges beyond the ends, where nothing is drawn
constexpr double kNarrowest = 1e-12;  // of a value: less is noise, and ticks would be equal

double bounded(double value, bool log) {
  if (std::isnan(value)) return log ? 1.0 : 0.0;
  return log ? std::clamp(value, 1.0 / kMostLog, kMostLog) : std::clamp(value, -kMost, kMost);
}

/// 1, 2 or 5 times a power of ten, so that about five ticks fit in `range`.
double tick_step(double range) {
  const double rough = range / 5.0;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10.0 * power;
}

}  // namespace

Scale::Scale(double low, double high, double from, double to, bool log)
    : low_(bounded(low, log)), high_(bounded(high, log)), from_(from), to_(to), log_(log) {
  const double size = std::max(std::abs(low_), std::abs(high_));
  if (high_ - low_ > kNarrowest * size && (log_ || size > kLeast)) return;
  if (log_) {
    low_ /= 2.0;
    high_ = std::max(low_ * 4.0, high_ * 2.0);
    return;
  }
  const double margin = size > kLeast ? size * 0.1 : 1.0;
  low_ = std::min(low_, high_) - margin;
  high_ = std::max(low_ + 2.0 * margin, high_ + margin);
}

Scale Scale::rounded(double low, double high, double from, double to) {
  const Scale tight(low, high, from, to, false);
  const double step = tick_step(tight.high_ - tight.low_);
  return {std::floor(tight.low_ / step + 1e-9) * step, std::ceil(tight.high_ / step - 1e-9) * step,
          from, to, false};
}

double Scale::at(double value) const {
  value = bounded(value, log_);
  const double share =
      log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return from_ + std::clamp(share, -kFar, kFar) * (to_ - from_);
}

std::vector<double> Scale::ticks() const {
  std::vector<double> ticks;
  if (log_) ticks = log_ticks();
  if (ticks.size() >= 3) return ticks;
  ticks.clear();
  const double step = tick_step(high_ - low_);
  const double first = std::ceil(low_ / step - 1e-9);
  for (int i = 0; i < kMostTicks; ++i) {
    const double tick = (first + i) * step;
    if (tick > high_ + step * 1e-9) break;
    ticks.push_back(tick);
  }
  return ticks;
}

std::vector<double> Scale::log_ticks() const {
  std::vector<double> ticks;
  const double decades = std::log10(high_ / low_);
  const int every = static_cast<int>(std::ceil(decades / 9.0));
  for (int power = static_cast<int>(std::floor(std::log10(low_))); power <= 300; power += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10.0, power);
      if (tick > high_ * (1.0 + 1e-9)) return ticks;
      if (tick < low_ * (1.0 - 1e-9) || (factor > 1.0 && decades > 2.5)) continue;
      ticks.push_back(tick);
    }
  }
  return ticks;
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e12) return fmt::format("{:g}T", value * 1e-12);
  if (size >= 1e9) return fmt::format("{:g}G", value * 1e-9);
  if (size >= 1e6) return fmt::format("{:g}M", value * 1e-6);
  if (size >= 1e4) return fmt::format("{:g}k", value * 1e-3);
  return fmt::format("{:.4g}", size < 1e-12 ? 0.0 : value);
}

}  // namespace wisp
