// parallel_reduce_ranges on CUDA streams. Only core/loops/parallel_ranges.h includes this file.
#pragma once

#include "core/loops/device_table.h"
#include "core/loops/parallel_cuda.h"

namespace wisp::cuda {

/// Reduces a part of a range into partial[b], in block b.
template <class Kernel>
__global__ void run_reduce_parts(const Ranges::Range* table, int64_t count, const Kernel kernel,
                                 typename Kernel::Value* partial) {
  const int64_t place = blockIdx.x;
  const Ranges::Range range =
      table[row_of(place, count, [&](int64_t at) { return table[at].first_block; })];
  const int64_t block = parallel::reduce_block(range.numel);
  const int64_t begin = (place - range.first_block) * block;
  const int64_t end = begin + block < range.numel ? begin + block : range.numel;
  const typename Kernel::Value result =
      reduce_block(range.begin + begin, range.begin + end, kernel);
  if (threadIdx.x == 0) partial[place] = result;
}

/// Reduces the partial results of range r, in block r.
template <class Kernel>
__global__ void run_reduce_partials(const Ranges::Range* table, const Kernel kernel,
                                    const typename Kernel::Value* partial,
                                    typename Kernel::Value* out) {
  const Ranges::Range range = table[blockIdx.x];
  const int64_t block = parallel::reduce_block(range.numel);
  const typename Kernel::Value result =
      reduce_block(0, (range.numel + block - 1) / block,
                   parallel::Partials<Kernel>{partial + range.first_block, kernel});
  if (threadIdx.x == 0) out[range.slot] = result;
}

template <class Kernel>
void launch_reduce_ranges(const Stream& stream, const Ranges& ranges, const Kernel& kernel,
                          typename Kernel::Value* out) {
  if (ranges.count() == 0) return;
  const cudaStream_t queue = handle(stream);
  auto* partial = reinterpret_cast<typename Kernel::Value*>(ranges.partial());
  if (ranges.blocks() > 0)
    run_reduce_parts<<<static_cast<unsigned>(ranges.blocks()), kThreads, 0, queue>>>(
        ranges.table(), ranges.count(), kernel, partial);
  run_reduce_partials<<<static_cast<unsigned>(ranges.count()), kThreads, 0, queue>>>(
      ranges.table(), kernel, partial, out);
  launched("parallel_reduce_ranges", 2);
}

}  // namespace wisp::cuda
