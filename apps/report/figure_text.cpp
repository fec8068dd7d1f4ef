#include "apps/report/figure_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace wisp {

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes * 1e-9);
  if (bytes >= 1e6) return fmt::format("{:.2f} MB", bytes * 1e-6);
  if (bytes >= 1e3) return fmt::format("{:.1f} kB", bytes * 1e-3);
  return fmt::format("{:.0f} B", bytes);
}

std::string reduction_text(double times, double sent) {
  return sent > 0.0 ? fmt::format("{:.1f}x", times) : "-";
}

std::string seconds_text(double seconds) {
  if (std::isnan(seconds)) return "-";
  if (seconds < 60.0) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace wisp
