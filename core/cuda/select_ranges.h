// parallel_select_ranges on CUDA streams. Only core/loops/select_ranges.h includes this file.
#pragma once

#include "core/loops/parallel_cuda.h"

namespace wisp::cuda {

constexpr int kChunkWords = static_cast<int>(parallel::kSelectChunk / 64);
static_assert(parallel::kSelectChunk % kThreads == 0);

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

/// Emits the selected elements of a block's chunk, which begins at element `begin`, at positions
/// from `first` on. `all_words` is the number of mask words.
template <class Kernel>
__device__ void chunk_emit(int64_t begin, int64_t all_words, int64_t first, const Kernel& kernel,
                           const uint64_t* masks) {
  __shared__ uint64_t mask[kChunkWords];
  __shared__ int before[kChunkWords];  // selected up to and including the word
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t words = all_words - begin / 64;
  if (thread < kChunkWords) {
    mask[thread] = thread < words ? masks[begin / 64 + thread] : 0;
    before[thread] = __popcll(mask[thread]);
  }
  __syncthreads();
  for (int step = 1; step < kChunkWords; step *= 2) {
    const int more = thread < kChunkWords && thread >= step ? before[thread - step] : 0;
    __syncthreads();
    if (thread < kChunkWords) before[thread] += more;
    __syncthreads();
  }
  if (before[kChunkWords - 1] == 0) return;
  for (int i = thread; i < parallel::kSelectChunk; i += kThreads) {
    const int word = i / 64;
    const uint64_t bit = uint64_t{1} << (i % 64);
    if (!(mask[word] & bit)) continue;
    const int in_and_after = __popcll(mask[word] & ~(bit - 1));
    const int64_t position = first + before[word] - in_and_after;
    if (position < parallel::capacity_of(kernel)) kernel.emit(position, begin + i);
  }
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
