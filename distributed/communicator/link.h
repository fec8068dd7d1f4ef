// The emulated link: what the bytes of a collective would take on a slower wire. Pure arithmetic.
#pragma once

#include <cstdint>

namespace wisp {

/// Every worker's own connection to the others, full duplex.
struct LinkSpec {
  double gbit_per_s = 0.0;  // in each direction; 0: no limit
  double latency_us = 0.0;  // of each message step
};

/// Microseconds for a collective in which a worker sends and receives so many bytes in `steps`
/// message steps, one after the other.
double duration_us(const LinkSpec& link, int64_t sent, int64_t received, int steps);

}  // namespace wisp
