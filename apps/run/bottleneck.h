// What a faster step would need first, from the figures that every step measures.
#pragma once

#include <string>

namespace wisp {

/// Milliseconds of a step and worker. Loader, compute and wait follow each other on the compute
/// thread and are the step; encode, wire and decode are the comm thread's, beside compute.
struct StepTimes {
  double loader_ms = 0.0;
  double compute_ms = 0.0;
  double wait_ms = 0.0;
  double encode_ms = 0.0;
  double wire_ms = 0.0;
  double decode_ms = 0.0;

  double step_ms() const { return loader_ms + compute_ms + wait_ms; }
};

enum class Part { loader, compute, encode, wire, decode, workers };
const char* name_of(Part part);

struct Bottleneck {
  Part part = Part::compute;
  double share = 0.0;   // of the step, in [0, 1]: at most so much would go if the part took no time
  double factor = 0.0;  // the wire only: about so many times fewer bytes would hide behind compute;
                        // 0: not even that would do
};

/// The part with the largest share, the others unchanged:
///   loader    all of it: nothing else runs meanwhile
///   encode    min(encode, wait): what of it compute does not hide is a part of the wait
///   wire      min(wire, wait)
///   decode    min(decode, wait)
///   workers   wait - encode - wire - decode, if positive: the others came late
///   compute   compute + wait - encode - wire - decode within [0, compute]: without compute a step
///             would still take as long as the exchange, nothing of which was hidden any more
/// These are upper bounds: encode and wire overlap each other too, and the first bytes leave when
/// the first gradient is ready.
Bottleneck find_bottleneck(const StepTimes& times);

/// "bottleneck: wire (up to 78 % of a step); a faster link or …", one line.
std::string bottleneck_line(const StepTimes& times);

}  // namespace wisp
