// The part of a step to speed up first, found from the times that every step measures. Any thread.
#pragma once

#include <string>
#include <utility>

namespace wisp {

struct StepReport;

/// Milliseconds per step and worker. Loader, compute and wait follow each other on the compute
/// thread and make up the step. Encode, wire and decode run on the comm thread beside compute.
struct StepTimes {
  double loader_ms = 0.0;
  double compute_ms = 0.0;
  double wait_ms = 0.0;
  double encode_ms = 0.0;
  double wire_ms = 0.0;
  double decode_ms = 0.0;

  double step_ms() const { return loader_ms + compute_ms + wait_ms; }
};

/// The members of StepTimes with their names in files, in the files' order.
inline constexpr std::pair<const char*, double StepTimes::*> kStepTimes[] = {
    {"loader_ms", &StepTimes::loader_ms}, {"compute_ms", &StepTimes::compute_ms},
    {"encode_ms", &StepTimes::encode_ms}, {"wait_ms", &StepTimes::wait_ms},
    {"wire_ms", &StepTimes::wire_ms},     {"decode_ms", &StepTimes::decode_ms}};

/// The times of one step of this worker.
StepTimes times_of(const StepReport& report);

enum class Part { loader, compute, encode, wire, decode, workers };
const char* name_of(Part part);

struct Bottleneck {
  Part part = Part::compute;
  double share = 0.0;   // of the step, in [0, 1]: the most that is saved if the part takes no time
  double factor = 0.0;  // wire: divide bytes by about this to hide them; 0: impossible
};

/// Finds the part with the largest share of the step, if the others do not change:
///   loader    loader: nothing else runs meanwhile
///   encode    min(encode, wait): what compute does not hide is part of the wait
///   wire      min(wire, wait)
///   decode    min(decode, wait)
///   workers   wait - encode - wire - decode, if positive: other workers came late
///   compute   compute + wait - encode - wire - decode within [0, compute]: without compute a step
///             would take as long as the exchange, with nothing to hide behind
/// The shares are upper bounds: encode and wire also overlap each other, and the first bytes leave
/// as soon as the first gradient is ready.
Bottleneck find_bottleneck(const StepTimes& times);

/// "bottleneck: wire (up to 78 % of a step); a faster link or …", one line.
std::string bottleneck_line(const StepTimes& times);

}  // namespace wisp
