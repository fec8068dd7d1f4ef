// What the times of a method's encode and decode are compared with.
#pragma once

#include <cstdint>
#include <string>

#include "distributed/bench/rehearsal.h"

namespace wisp {

/// Milliseconds of the stream's clock.
struct CodecLimits {
  double encode = 0.0;
  double decode = 0.0;  // of one payload
  double decode4 = 0.0;
};

/// Of plain loops over the method's memory: encode reads the gradient, written just before (and
/// squares or momentum if the method needs them), reads and writes its state and writes the
/// payload; decode reads payloads and writes, then adds to, the gradient. For a method whose work
/// is a library's, of that library's calls alone: fft its transforms, powersgd and acpsgd their
/// products. `payload_bytes` is one worker's, over all rounds; the unit has one field, of one
/// slice.
CodecLimits measure_codec_limits(const std::string& method, Rehearsal& rehearsal,
                                 int64_t payload_bytes);

}  // namespace wisp
