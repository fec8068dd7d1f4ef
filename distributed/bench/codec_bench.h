// A benchmark of a method's encode and decode, with gradients drawn anew each time, on the CPU or a
// device. It compares them with plain loops over the same memory, or with a library's calls alone.
// One thread calls; the loops use as many threads as requested.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "compression/compressor.h"

namespace wisp {

struct CodecBenchOptions {
  int64_t numel = 25'000'000;  // one field, the most square matrix of that many elements
  double ratio = 0.001;
  double zero_rows = 0.0;  // share of the matrix's rows whose gradient is zero in all steps, like
                           // words that do not occur
  int threads = 1;
  Device device;
  double seconds = 8.0;  // duration of the measurement, at least 3 steps
};

/// Times are medians in milliseconds of the stream's clock, over all rounds of one worker.
struct CodecResult {
  std::string method;
  CodecBenchOptions options;
  int rounds = 0;
  double encode_ms = 0.0;
  double decode_ms = 0.0;   // one worker's payload; elements outside it are set to zero
  double decode4_ms = 0.0;  // payloads of four workers, or their sum
  // The limits of codec_limits.h.
  double encode_limit_ms = 0.0, decode_limit_ms = 0.0, decode4_limit_ms = 0.0;
  int64_t payload_bytes = 0;  // one worker of four, over all rounds
  int64_t state_bytes = 0, scratch_bytes = 0;
  /// First step of four workers: |result - sum| / |sum|, and the cosine between the two.
  double rel_error = 0.0, cosine = 0.0;
  double bias = 0.0;  // rel_error of the mean of 16 first steps with different random numbers
};

/// `make` gives a new compressor for a number of workers. The result is the same on every device,
/// except for times and the last bits of a library's products and transforms. Throws Error for
/// options out of range, and if `make` gives no compressor.
CodecResult bench_codec(const std::string& method,
                        const std::function<std::unique_ptr<Compressor>(int workers)>& make,
                        const CodecBenchOptions& options);

}  // namespace wisp
