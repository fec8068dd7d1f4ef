// The emulated link: the time that a collective's bytes take on a slower wire. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wisp {

/// The full-duplex connection of each worker to the others.
struct LinkSpec {
  double gbit_per_s = 0.0;  // in each direction; 0: no limit
  double latency_us = 0.0;  // latency of each message step
};

/// Microseconds for a collective in which a worker sends and receives these bytes in `steps`
/// message steps, one after the other.
inline double duration_us(const LinkSpec& link, int64_t sent, int64_t received, int steps) {
  const double latency = link.latency_us * steps;
  if (link.gbit_per_s <= 0.0) return latency;
  const double bits = 8.0 * static_cast<double>(std::max(sent, received));
  return latency + bits / (link.gbit_per_s * 1e3);  // 1 Gbit/s carries 1000 bits in a microsecond
}

}  // namespace wisp
