// Times a method's encode and decode on gradients drawn anew each time, beside plain loops over the
// same memory or a library's calls alone, on the CPU or a device. One thread calls; the loops use
// as many as it asks for.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "compression/compressor.h"

namespace wisp {

struct CodecBenchOptions {
  int64_t numel = 25'000'000;  // one field, of the most square matrix of that many elements
  double ratio = 0.001;
  double zero_rows = 0.0;  // share of the matrix's rows whose gradient is zero in all steps, as of
                           // words that do not occur
  int threads = 1;
  Device device;
  double seconds = 8.0;  // to measure for, at least 3 steps
};

/// Times are medians in milliseconds of the stream's clock, over all rounds of one worker.
struct CodecResult {
  std::string method;
  CodecBenchOptions options;
  int rounds = 0;
  double encode_ms = 0.0;
  double decode_ms = 0.0;   // one worker's payload, what is around it set to zero
  double decode4_ms = 0.0;  // four workers' payloads, or their sum
  // See codec_limits.h.
  double encode_limit_ms = 0.0, decode_limit_ms = 0.0, decode4_limit_ms = 0.0;
  int64_t payload_bytes = 0;  // one worker of four, over all rounds
  int64_t state_bytes = 0, scratch_bytes = 0;
  /// Of the first step of four workers: |result - sum| / |sum|, and the cosine between the two.
  double rel_error = 0.0, cosine = 0.0;
  double bias = 0.0;  // rel_error of the mean of 16 first steps with other random numbers
};

/// `make` gives a new compressor for a number of workers. But for the times, and the last bits of a
/// library's products and transforms, the result is the same on every device. Throws Error for
/// options out of range, and if it gives none.
CodecResult bench_codec(const std::string& method,
                        const std::function<std::unique_ptr<Compressor>(int workers)>& make,
                        const CodecBenchOptions& options);

}  // namespace wisp
