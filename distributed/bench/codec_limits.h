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
/// the payload. Decode reads payloads and writes, then adds to, the gradient. If a library does
/// most of the method's work, the times of that library's calls alone: the transforms of fft, the
/// products of powersgd and acpsgd. `payload_bytes` is one worker's, over all rounds. The unit has
/// one field of one slice.
CodecLimits measure_codec_limits(const std::string& method, Rehearsal& rehearsal,
                                 int64_t payload_bytes);

}  // namespace wisp
