// Times a method's encode and decode on gradients drawn anew each time. One thread calls; the loops
// use as many as it asks for.
#pragma once

#include <string>

#include "compression/compressor.h"

namespace wisp {

struct CodecResult {
  std::string method;
  int64_t numel = 0;
  double ratio = 0.0;
  int threads = 0;
  double encode_ms = 0.0, decode_ms = 0.0;  // medians
  int64_t payload_bytes = 0;                // of the last payload
  double rel_error = 0.0;  // of the first payload: |decoded - gradient| / |gradient|, 2-norms
};

/// One worker, one field of `numel` normal gradients, momentum 0.9; rounds until `seconds` have
/// passed, at least 3. Throws Error for a method without a payload ("none") or of several rounds.
CodecResult bench_codec(const std::string& method, Config& config, int64_t numel, double ratio,
                        int threads, double seconds);

}  // namespace wisp
