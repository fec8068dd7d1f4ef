#include "apps/report/page/scale.h"

#include <fmt/format.h>

#include <cmath>

namespace wisp {
namespace {

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
    : low_(low), high_(high), from_(from), to_(to), log_(log) {
  if (high_ > low_) return;
  if (log_) {
    low_ /= 2.0;
    high_ *= 2.0;
    return;
  }
  const double margin = low_ == 0.0 ? 1.0 : std::abs(low_) * 0.1;
  low_ -= margin;
  high_ += margin;
}

Scale Scale::rounded(double low, double high, double from, double to) {
  const Scale tight(low, high, from, to, false);
  const double step = tick_step(tight.high_ - tight.low_);
  return {std::floor(tight.low_ / step + 1e-9) * step, std::ceil(tight.high_ / step - 1e-9) * step,
          from, to, false};
}

double Scale::at(double value) const {
  const double share =
      log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return from_ + share * (to_ - from_);
}

std::vector<double> Scale::ticks() const {
  std::vector<double> ticks;
  if (log_) ticks = log_ticks();
  if (ticks.size() >= 3) return ticks;
  ticks.clear();
  const double step = tick_step(high_ - low_);
  for (double n = std::ceil(low_ / step - 1e-9); n * step <= high_ + step * 1e-9; n += 1.0)
    ticks.push_back(n * step);
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
