// A code is pure: numbers in, bytes out, no state, no rounds. Error feedback turns any code into a
// Compressor; gossip uses codes directly.
#pragma once

#include <memory>

#include "compression/compressor.h"

namespace wisp {

/// The numbers a code encodes: gradient, residual + gradient, or, without pointers, zeros. peek(i)
/// may be called any number of times; then take(i) exactly once per element, which leaves the sum
/// in the residual; then held(i) reads it, and sent(i, part) leaves there what did not travel.
struct Source {
  const float* gradient = nullptr;  // arena
  float* residual = nullptr;        // arena, or null

  WISP_HD float peek(int64_t i) const {
    if (!gradient) return 0.0f;
    return residual ? residual[i] + gradient[i] : gradient[i];
  }
  WISP_HD float take(int64_t i) const {
    const float value = peek(i);
    if (residual) residual[i] = value;
    return value;
  }
  WISP_HD float held(int64_t i) const { return residual ? residual[i] : peek(i); }
  WISP_HD void sent(int64_t i, float part) const {
    if (residual) residual[i] = residual[i] == part ? 0.0f : residual[i] - part;
  }
};

class Code {
 public:
  virtual ~Code() = default;
  /// How the encoded bytes travel: all_reduce if a sum of payloads is the payload of the sum, else
  /// all_gather. Its bytes are exact, or the proven worst case.
  virtual Message message(const UnitSpec&, const StepInfo&) const = 0;
  virtual int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const = 0;
  /// Calls sent() for every element whose value travels.
  virtual void encode(Context&, const Source&, const UnitSpec&, const StepInfo&, const Outlet&,
                      std::byte* scratch) const = 0;
  /// Writes weight * decoded into the unit's slices of the arena `into`, or adds it to what is
  /// there. Throws Error for a payload that is not well-formed.
  virtual void decode(Context&, const Payload&, float weight, bool add, const UnitSpec&,
                      const StepInfo&, Tensor into, std::byte* scratch) const = 0;
};

}  // namespace wisp
