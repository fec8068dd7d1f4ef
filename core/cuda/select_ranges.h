// parallel_select_ranges on CUDA streams. Only core/loops/select_ranges.h includes this file.
#pragma once

#include "core/loops/parallel_cuda.h"

namespace wisp::cuda {

/// Writes the masks of chunk c, and the number of its set bits into `selected`, in block c.
template <class Row, class KernelOf>
__global__ void run_range_masks(const SelectRanges<Row> ranges, const KernelOf kernel_of) {
  const int64_t at = ranges.of(blockIdx.x);
  const auto kernel = kernel_of(at);
  if (parallel::is_off(kernel)) return;
  const SelectRange& range = ranges.row[at];
  const int64_t count = chunk_masks(range.begin_of(blockIdx.x), range.end_of(blockIdx.x), kernel,
                                    reinterpret_cast<uint32_t*>(ranges.masks + range.first_word));
  if (threadIdx.x == 0) ranges.selected[blockIdx.x] = count;
}

/// Emits the selected elements of chunk c, in block c. Counts of earlier chunks in the group give
/// the first position.
template <class Row, class KernelOf>
__global__ void run_range_emit(const SelectRanges<Row> ranges, const KernelOf kernel_of) {
  const int64_t at = ranges.of(blockIdx.x);
  const auto kernel = kernel_of(at);
  if (parallel::is_off(kernel)) return;
  const SelectRange& range = ranges.row[at];
  __shared__ unsigned long long before;
  if (threadIdx.x == 0) before = 0;
  __syncthreads();
  unsigned long long own = 0;
  for (int64_t c = range.group_begin + threadIdx.x; c < blockIdx.x; c += kThreads)
    own += static_cast<unsigned long long>(ranges.selected[c]);
  if (own > 0) atomicAdd(&before, own);
  __syncthreads();
  const auto first = static_cast<int64_t>(before);
  if (threadIdx.x == 0 && blockIdx.x + 1 == range.group_end)
    *kernel.count() = first + ranges.selected[blockIdx.x];
  chunk_emit(range.begin_of(blockIdx.x), SelectRange::words(range.numel), first, kernel,
             ranges.masks + range.first_word);
}

template <class Row, class KernelOf>
void launch_select_ranges(const Stream& stream, const SelectRanges<Row>& ranges,
                          const KernelOf& kernel_of) {
  if (ranges.chunks <= 0) return;
  const auto chunks = static_cast<unsigned>(ranges.chunks);
  run_range_masks<<<chunks, kThreads, 0, handle(stream)>>>(ranges, kernel_of);
  run_range_emit<<<chunks, kThreads, 0, handle(stream)>>>(ranges, kernel_of);
  launched("parallel_select_ranges", parallel::kSelectRangesKernels);
}

}  // namespace wisp::cuda
