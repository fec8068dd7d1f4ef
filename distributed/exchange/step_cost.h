// The cost of a step for one worker, in bytes and milliseconds. It is always counted, and the
// trainer writes it to the log, the metrics and the summary. A value; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wisp {

struct StepCost {
  int64_t bytes_raw = 0;      // size of the gradients
  int64_t bytes_encoded = 0;  // bytes that this worker offered to the wire: payloads with sizes and
                              // headers, and dense gradients
  int64_t bytes_sent = 0;     // bytes sent by the communicator's algorithms, including status words
  int64_t bytes_received = 0;
  int64_t bytes_dense = 0;  // bytes that a dense all-reduce of the raw gradients would send
  double encode_ms = 0.0;   // check, clip and encode, on the comm thread
  double wait_ms = 0.0;     // wait of the compute thread for the comm thread
  double clip_ms = 0.0;     // check and clipping in before_update, on the compute thread
  double wire_ms = 0.0;     // collectives, each from the arrival of the last rank on
  double decode_ms = 0.0;   // check and decode, on the comm thread
  // Segments whose local gradient counted as zero (GradientClip::check).
  std::vector<std::string> nonfinite;  // not finite
  std::vector<std::string> too_large;  // finite norm, but too large for a sum

  StepCost& operator+=(const StepCost& other) {
    bytes_raw += other.bytes_raw;
    bytes_encoded += other.bytes_encoded;
    bytes_sent += other.bytes_sent;
    bytes_received += other.bytes_received;
    bytes_dense += other.bytes_dense;
    encode_ms += other.encode_ms;
    wait_ms += other.wait_ms;
    clip_ms += other.clip_ms;
    wire_ms += other.wire_ms;
    decode_ms += other.decode_ms;
    nonfinite.insert(nonfinite.end(), other.nonfinite.begin(), other.nonfinite.end());
    too_large.insert(too_large.end(), other.too_large.begin(), other.too_large.end());
    return *this;
  }
};

/// Bytes before / bytes after; 1 if nothing is sent.
inline double reduction(double before, double after) { return after > 0.0 ? before / after : 1.0; }

}  // namespace wisp
