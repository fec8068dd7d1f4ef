// Phases of a team that is a thread block, and the loop over teams. Included by
// core/parallel_teams.h only. A phase begins with a barrier, so that what was read between phases
// was read before it, and ends with one.
#pragma once

#include "core/parallel_cuda.h"

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

/// Block b is the team of item b.
template <class Team, class Kernel>
__global__ void __launch_bounds__(kTeamThreads) run_teams(const Kernel kernel) {
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
