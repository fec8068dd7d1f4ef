// Phases of a thread block that selects from a chunk of elements. core/cuda/select_ranges.h
// includes this file. So does its test, with the threads of a CPU in the place of a block's.
#pragma once

#include <cstdint>

namespace wisp::cuda {

constexpr int kChunkThreads = 256;  // each has 32 of a chunk's elements
constexpr int kChunkWarps = kChunkThreads / 32;

/// Numbers of selected elements before those of a thread.
struct Before {
  int64_t earlier_chunks;
  int64_t earlier_threads;  // of this chunk
};

/// A block's memory for before_thread().
struct WarpSums {
  int64_t more[kChunkWarps];
  int count[kChunkWarps];
};

/// All threads of a block call it, once in a kernel. Each tells the elements of some of the earlier
/// chunks, `more`, and its own, `count`.
__device__ inline Before before_thread(int64_t more, int count, WarpSums& sums) {
  constexpr uint32_t kAll = 0xffffffffu;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int through = count;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(kAll, through, step);
    if (lane >= step) through += other;
    more += __shfl_xor_sync(kAll, more, step);
  }
  if (lane == 31) sums.count[warp] = through;
  if (lane == 0) sums.more[warp] = more;
  __syncthreads();
  Before before{0, through - count};
  for (int w = 0; w < kChunkWarps; ++w) {
    before.earlier_chunks += sums.more[w];
    if (w < warp) before.earlier_threads += sums.count[w];
  }
  return before;
}

/// Calls emit(position, element) for each set bit of a thread's mask, whose lowest bit is
/// `element`. Positions rise from `position` on, and end before `capacity`.
template <class Emit>
__device__ void emit_bits(uint32_t mask, int64_t element, int64_t position, int64_t capacity,
                          const Emit& emit) {
  for (; mask != 0 && position < capacity; mask &= mask - 1, ++position)
    emit(position, element + __ffs(static_cast<int>(mask)) - 1);
}

}  // namespace wisp::cuda
