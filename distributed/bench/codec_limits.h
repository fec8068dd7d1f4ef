// Reference times for a method's encode and decode. One thread.
#pragma once

#include <cstdint>
#include <string>

#include "distributed/bench/rehearsal.h"

namespace wisp {

/// Milliseconds of the stream's clock.
struct CodecLimits {
  double encode = 0.0;
  double decode = 0.0;  // decode of one payload
  double decode4 = 0.0;
};

/// The times of plain loops over the method's memory. Encode reads the gradient, written just
/// before, and squares or momentum if the method needs them; reads and writes the state; and writes
/// the payload. Decode reads payloads and writes the gradient, then adds to it. For fft, powersgd
/// and acpsgd, a library does most of the work, and the times are those of its transforms or
/// products alone. `payload_bytes` is one worker's, over all rounds. The unit has one field of one
/// slice.
CodecLimits measure_codec_limits(const std::string& method, Rehearsal& rehearsal,
                                 int64_t payload_bytes);

}  // namespace wisp
