// A reduction over many ranges at once, in two launches whatever their number. Each range has the
// same bits as from parallel_reduce. Any thread that may use the stream may call.
#pragma once

#include "core/loops/parallel.h"
#include "core/loops/ranges.h"

#ifdef __CUDACC__
#include "core/cuda/reduce_ranges.h"
#endif

namespace wisp {

/// Writes to out[range.slot] the combination of kernel.map(i) over each range. The kernel is as for
/// parallel_reduce.
template <class Kernel>
void parallel_reduce_ranges(const Stream& stream, const Ranges& ranges, Kernel kernel,
                            typename Kernel::Value* out) {
#ifdef __CUDACC__
  if (stream.device().is_cuda()) return cuda::launch_reduce_ranges(stream, ranges, kernel, out);
#endif
  stream.launch(
      [table = ranges.table(), count = ranges.count(), kernel, out] {
        for (const Ranges::Range* range = table; range < table + count; ++range)
          out[range->slot] = parallel::cpu_reduce_range(range->begin, range->numel, kernel);
      },
      2);
}

}  // namespace wisp
