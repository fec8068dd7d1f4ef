#include "apps/report/figure_text.h"

#include <fmt/format.h>

#include <cmath>

#include "core/io/progress.h"

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
  return duration_text(seconds);
}

}  // namespace wisp
