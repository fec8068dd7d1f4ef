// Phases of a team that is a thread block, and the loop over teams. Included by
// core/loops/parallel_teams.h only. A phase begins with a barrier, so that what was read between
// phases was read before it, and ends with one.
#pragma once

#include "core/loops/parallel_cuda.h"

namespace wisp::cuda {

constexpr int kTeamThreads = 512;
constexpr int kTeamWarps = kTeamThreads / 32;

template <class Body>
__device__ void team_each(int64_t n, const Body& body) {
  __syncthreads();
  for (int64_t i = threadIdx.x; i < n; i += kTeamThreads) body(i);
  __syncthreads();
}

/// Adds up `sums` of the warps before this one; `total` grows by all.
__device__ inline int64_t before_warp(const int64_t* sums, int warp, int64_t* total) {
  int64_t before = *total;
  for (int w = 0; w < kTeamWarps; ++w) {
    if (w < warp) before += sums[w];
    *total += sums[w];
  }
  return before;
}

template <class Value, class Emit>
__device__ int64_t team_scan(int64_t* sums, int64_t n, const Value& value, const Emit& emit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int64_t total = 0;
  for (int64_t base = 0; base < n; base += kTeamThreads) {
    __syncthreads();
    const int64_t i = base + threadIdx.x;
    const int64_t own = i < n ? value(i) : 0;
    int64_t through = own;
    for (int step = 1; step < 32; step *= 2) {
      const int64_t other = __shfl_up_sync(0xffffffffu, through, step);
      if (lane >= step) through += other;
    }
    if (lane == 31) sums[warp] = through;
    __syncthreads();
    const int64_t before = before_warp(sums, warp, &total);
    if (i < n) emit(i, before + through - own);
  }
  __syncthreads();
  return total;
}

template <class Keep, class Emit>
__device__ int64_t team_select(int64_t* sums, int64_t n, const Keep& keep, const Emit& emit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int64_t total = 0;
  for (int64_t base = 0; base < n; base += kTeamThreads) {
    __syncthreads();
    const int64_t i = base + threadIdx.x;
    const uint32_t kept = __ballot_sync(0xffffffffu, i < n && keep(i));
    if (lane == 0) sums[warp] = __popc(kept);
    __syncthreads();
    const int64_t before = before_warp(sums, warp, &total);
    if (kept >> lane & 1u) emit(before + __popc(kept & ((1u << lane) - 1)), i);
  }
  __syncthreads();
  return total;
}

/// parallel::reduce_lanes over [begin, end): all threads evaluate map, a tile at a time; the first
/// kLanes combine in the order of the CPU. For thread 0.
template <class Kernel>
__device__ typename Kernel::Value team_reduce_lanes(int64_t begin, int64_t end,
                                                    const Kernel& kernel,
                                                    typename Kernel::Value* tile) {
  const int thread = static_cast<int>(threadIdx.x);
  typename Kernel::Value lane = kernel.identity();
  for (int64_t i = begin; i < end; i += kTeamThreads) {
    if (i + thread < end) tile[thread] = kernel.map(i + thread);
    __syncthreads();
    for (int j = thread; thread < parallel::kLanes && j < kTeamThreads && i + j < end;
         j += parallel::kLanes)
      lane = kernel.combine(lane, tile[j]);
    __syncthreads();
  }
  if (thread < parallel::kLanes) tile[thread] = lane;
  for (int width = parallel::kLanes / 2; width > 0; width /= 2) {
    __syncthreads();
    if (thread < width) tile[thread] = kernel.combine(tile[thread], tile[thread + width]);
  }
  return tile[thread];
}

/// The same, for all threads.
template <class Kernel>
__device__ typename Kernel::Value team_reduce_lanes(int64_t begin, int64_t end,
                                                    const Kernel& kernel) {
  using Value = typename Kernel::Value;
  alignas(Value) __shared__ unsigned char memory[kTeamThreads * sizeof(Value)];
  Value* tile = reinterpret_cast<Value*>(memory);
  __syncthreads();
  team_reduce_lanes(begin, end, kernel, tile);
  __syncthreads();
  return tile[0];
}

template <class Kernel>
__device__ typename Kernel::Value team_reduce(int64_t n, const Kernel& kernel) {
  using Value = typename Kernel::Value;
  alignas(Value) __shared__ unsigned char tile_memory[kTeamThreads * sizeof(Value)];
  alignas(Value) __shared__ unsigned char partial_memory[parallel::kMaxPartials * sizeof(Value)];
  Value* tile = reinterpret_cast<Value*>(tile_memory);
  Value* partial = reinterpret_cast<Value*>(partial_memory);
  const int64_t block = parallel::reduce_block(n);
  int64_t blocks = 0;
  for (int64_t begin = 0; begin < n; begin += block, ++blocks) {
    __syncthreads();
    const int64_t end = begin + block < n ? begin + block : n;
    const Value value = team_reduce_lanes(begin, end, kernel, tile);
    if (threadIdx.x == 0) partial[blocks] = value;
  }
  __syncthreads();
  team_reduce_lanes(0, blocks, parallel::Partials<Kernel>{partial, kernel}, tile);
  __syncthreads();
  return tile[0];
}

/// Block b is the team of item b.
template <class Team, class Kernel>
__global__ void __launch_bounds__(kTeamThreads, resident_blocks<Kernel>())
    run_teams(const __grid_constant__ Kernel kernel) {
  using Shared = typename Kernel::Shared;
  __shared__ int64_t sums[kTeamWarps];
  alignas(Shared) __shared__ unsigned char memory[sizeof(Shared)];
  kernel(Team(sums), blockIdx.x, *reinterpret_cast<Shared*>(memory));
}

template <class Team, class Kernel>
void launch_teams(const Stream& stream, int64_t items, const Kernel& kernel) {
  if (items <= 0) return;
  run_teams<Team><<<static_cast<unsigned>(items), kTeamThreads, 0, handle(stream)>>>(kernel);
  launched("parallel_teams", 1);
}

}  // namespace wisp::cuda
