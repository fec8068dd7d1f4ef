#include "distributed/communicator/link.h"

#include <algorithm>

namespace wisp {

double duration_us(const LinkSpec& link, int64_t sent, int64_t received, int steps) {
  const double latency = link.latency_us * steps;
  if (link.gbit_per_s <= 0.0) return latency;
  const double bits = 8.0 * static_cast<double>(std::max(sent, received));
  return latency + bits / (link.gbit_per_s * 1e3);  // 1 Gbit/s carries 1000 bits in a microsecond
}

}  // namespace wisp
