#include "core/clock.h"

#include <chrono>

namespace wisp {
namespace {

std::chrono::steady_clock::time_point start() {
  static const auto first = std::chrono::steady_clock::now();
  return first;
}
const auto kStart = start();

}  // namespace

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start())
      .count();
}

}  // namespace wisp
