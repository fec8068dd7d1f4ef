// The emulated link: the time that a collective's bytes take on a slower wire. Pure; any thread.
#pragma once

#include <cstdint>

namespace wisp {

/// The full-duplex connection of each worker to the others.
struct LinkSpec {
  double gbit_per_s = 0.0;  // in each direction; 0: no limit
  double latency_us = 0.0;  // latency of each message step
};

/// Microseconds for a collective in which a worker sends and receives these bytes in `steps`
/// message steps, one after the other.
double duration_us(const LinkSpec& link, int64_t sent, int64_t received, int steps);

}  // namespace wisp
