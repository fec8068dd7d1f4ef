// A number for each axis of an image: a kernel size, stride, padding or dilation. A value type.
#pragma once

#include <cstdint>
#include <ostream>

namespace wisp {

struct Axes {
  constexpr Axes(int64_t both) : h(both), w(both) {}
  constexpr Axes(int64_t height, int64_t width) : h(height), w(width) {}

  int64_t h, w;
  bool operator==(const Axes&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Axes& axes) {
  return out << axes.h << " x " << axes.w;
}

}  // namespace wisp
