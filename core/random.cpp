#include "core/random.h"

#include <cmath>
#include <numbers>

namespace wisp {

double normal(const Philox& philox, uint64_t index) {
  const Philox::Block block = philox.block(index);
  const double u = (static_cast<double>(block.word[0]) + 0.5) * 0x1p-32;
  const double v = (static_cast<double>(block.word[1]) + 0.5) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace wisp
