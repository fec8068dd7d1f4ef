// parallel_select_ranges on CUDA streams. Only core/loops/select_ranges.h includes this file.
#pragma once

#include "core/cuda/chunk_phases.h"
#include "core/loops/parallel_cuda.h"

namespace wisp::cuda {

static_assert(kChunkThreads == kThreads && parallel::kSelectChunk == 32 * kThreads);

/// Writes the kernel's answers for [begin, end), a block's chunk, as bits into `halves`
/// (little-endian: element 0 in bit 0). Returns the number of set bits to all threads.
template <class Kernel>
__device__ int64_t chunk_masks(int64_t begin, int64_t end, const Kernel& kernel, uint32_t* halves) {
  __shared__ int selected;
  if (threadIdx.x == 0) selected = 0;
  __syncthreads();
  const int64_t whole = (end + 63) / 64 * 64;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int64_t i = begin + threadIdx.x; i < whole; i += kThreads) {  // whole warps stay together
    const uint32_t bits = __ballot_sync(0xffffffffu, i < end && kernel(i));
    if (lane == 0) {
      halves[i / 32] = bits;
      atomicAdd(&selected, __popc(bits));
    }
  }
  __syncthreads();
  return selected;
}

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
/// the first position. A thread has a word of 32 elements.
template <class Row, class KernelOf>
__global__ void run_range_emit(const SelectRanges<Row> ranges, const KernelOf kernel_of) {
  const int64_t at = ranges.of(blockIdx.x);
  const auto kernel = kernel_of(at);
  if (parallel::is_off(kernel)) return;
  const SelectRange& range = ranges.row[at];
  __shared__ WarpSums sums;
  const int64_t begin = range.begin_of(blockIdx.x);
  const int64_t half = begin / 32 + threadIdx.x;
  const auto* halves = reinterpret_cast<const uint32_t*>(ranges.masks + range.first_word);
  const uint32_t mask = half < 2 * SelectRange::words(range.numel) ? halves[half] : 0;
  int64_t earlier = 0;
  for (int64_t c = range.group_begin + threadIdx.x; c < blockIdx.x; c += kThreads)
    earlier += ranges.selected[c];
  const Before before = before_thread(earlier, __popc(mask), sums);
  if (threadIdx.x == 0 && blockIdx.x + 1 == range.group_end)
    *kernel.count() = before.earlier_chunks + ranges.selected[blockIdx.x];
  emit_bits(mask, 32 * half, before.earlier_chunks + before.earlier_threads,
            parallel::capacity_of(kernel),
            [&](int64_t position, int64_t i) { kernel.emit(position, i); });
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
