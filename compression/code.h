// A code is pure: numbers in, bytes out, no state, no rounds. Error feedback turns any code into a
// Compressor; gossip uses codes directly.
#pragma once

#include <span>

#include "compression/compressor.h"

namespace wisp {

/// The numbers a code encodes: gradient, or residual + gradient. take(i) is called exactly once per
/// element and leaves the sum in the residual; peek(i) may be called any number of times before.
struct Source {
  const float* gradient = nullptr;  // arena
  float* residual = nullptr;        // arena, or null

  WISP_HD float peek(int64_t i) const { return residual ? residual[i] + gradient[i] : gradient[i]; }
  WISP_HD float take(int64_t i) const {
    const float value = peek(i);
    if (residual) residual[i] = value;
    return value;
  }
};

/// The key of a code's random numbers.
struct Key {
  uint64_t seed = 0;
  int64_t step = 0;
};

class Code {
 public:
  virtual ~Code() = default;
  /// How the encoded bytes travel: all_reduce if a sum of payloads is the payload of the sum, else
  /// all_gather.
  virtual Message message(const UnitSpec&,
                          const StepInfo&) const = 0;  // bytes: exact, or the proven worst case
  virtual int64_t scratch_bytes(const UnitSpec&) const = 0;
  virtual void encode(Context&, const Source&, const UnitSpec&, const StepInfo&, const Key&,
                      const Outlet&, std::byte* scratch) const = 0;
  /// into[field] += weight * decoded. `into` is an arena.
  virtual void decode_add(Context&, const Payload&, float weight, const UnitSpec&, const StepInfo&,
                          Tensor into, std::byte* scratch) const = 0;
};

}  // namespace wisp
