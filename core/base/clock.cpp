#include "core/base/clock.h"

#include <chrono>

namespace wisp {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

std::chrono::steady_clock::time_point start() {
  static const auto first = std::chrono::steady_clock::now();
  return first;
}
const auto kStart = start();

}  // namespace

double now_us() { return Microseconds(std::chrono::steady_clock::now() - start()).count(); }

double clock_origin_us() {
  static const double origin =
      Microseconds(std::chrono::system_clock::now().time_since_epoch()).count() - now_us();
  return origin;
}

}  // namespace wisp
