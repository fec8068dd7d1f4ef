// Apart from the bench: nvcc compiles its kernels, and does not compile fmt.
#include <fmt/format.h>

#include "distributed/codec_bench.h"

namespace wisp {

std::string CodecResult::json() const {
  return fmt::format(
      "{{\"method\":\"{}\",\"numel\":{},\"ratio\":{},\"threads\":{},\"rounds\":{},"
      "\"encode_ms\":{:.3f},\"encode_limit_ms\":{:.3f},\"decode_ms\":{:.3f},"
      "\"decode_limit_ms\":{:.3f},\"decode4_ms\":{:.3f},\"decode4_limit_ms\":{:.3f},"
      "\"payload_bytes\":{},\"state_bytes\":{},\"scratch_bytes\":{},\"rel_error\":{:.6g},"
      "\"cosine\":{:.6g},\"bias\":{:.6g}}}",
      method, options.numel, options.ratio, options.threads, rounds, encode_ms, encode_limit_ms,
      decode_ms, decode_limit_ms, decode4_ms, decode4_limit_ms, payload_bytes, state_bytes,
      scratch_bytes, rel_error, cosine, bias);
}

}  // namespace wisp
