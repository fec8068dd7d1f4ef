// Phases of a team that is a thread block. A phase begins with a barrier, so that earlier reads
// between phases are complete, and ends with a barrier. core/cuda/team.h includes this file. So
// does its test, with the threads of a CPU in the place of a block's.
#pragma once

#include <cstdint>

namespace wisp::cuda {

constexpr int kTeamThreads = 512;
constexpr int kTeamWarps = kTeamThreads / 32;
constexpr int kBatch = 8;  // elements that a thread reads at once

template <class Body>
__device__ void team_each(int64_t n, const Body& body) {
  __syncthreads();
  for (int64_t i = threadIdx.x; i < n; i += kTeamThreads) body(i);
  __syncthreads();
}

/// Returns *total plus the sums of the warps before this one, and adds all sums to *total.
__device__ inline int64_t before_warp(const int64_t* sums, int warp, int64_t* total) {
  int64_t before = *total;
  for (int w = 0; w < kTeamWarps; ++w) {
    if (w < warp) before += sums[w];
    *total += sums[w];
  }
  return before;
}

/// The part of team_scan for kTeamThreads * kEach elements from `base` on; kWhole says that they
/// all exist. A warp has neighbouring elements. A thread reads the values of all of its elements
/// before it goes on, so that the reads overlap.
template <int kEach, bool kWhole, class Value, class Emit>
__device__ void scan_some(int64_t* sums, int64_t base, int64_t n, int64_t* total,
                          const Value& value, const Emit& emit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t first = base + warp * (32 * kEach) + lane;
  __syncthreads();
  int64_t before[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e)
    before[e] = kWhole || first + 32 * e < n ? value(first + 32 * e) : 0;
  int64_t of_warp = 0;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int64_t own = before[e];
    int64_t through = own;
    for (int step = 1; step < 32; step *= 2) {
      const int64_t other = __shfl_up_sync(0xffffffffu, through, step);
      if (lane >= step) through += other;
    }
    before[e] = of_warp + through - own;
    of_warp += __shfl_sync(0xffffffffu, through, 31);
  }
  if (lane == 0) sums[warp] = of_warp;
  __syncthreads();
  const int64_t earlier = before_warp(sums, warp, total);
#pragma unroll
  for (int e = 0; e < kEach; ++e)
    if (kWhole || first + 32 * e < n) emit(first + 32 * e, earlier + before[e]);
}

template <class Value, class Emit>
__device__ int64_t team_scan(int64_t* sums, int64_t n, const Value& value, const Emit& emit) {
  int64_t total = 0, base = 0;
  for (; n - base >= kTeamThreads * kBatch; base += kTeamThreads * kBatch)
    scan_some<kBatch, true>(sums, base, n, &total, value, emit);
  if (n - base > kTeamThreads) {
    scan_some<kBatch, false>(sums, base, n, &total, value, emit);
  } else if (n > base) {
    scan_some<1, false>(sums, base, n, &total, value, emit);
  }
  __syncthreads();
  return total;
}

/// The part of team_select for kTeamThreads * kEach elements from `base` on; kWhole says that they
/// all exist. A warp has neighbouring elements. A thread calls keep for all of its elements before
/// it goes on, so that the reads overlap.
template <int kEach, bool kWhole, class Keep, class Emit>
__device__ void select_some(int64_t* sums, int64_t base, int64_t n, int64_t* total,
                            const Keep& keep, const Emit& emit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t first = base + warp * (32 * kEach) + lane;
  __syncthreads();
  bool keeps[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e) keeps[e] = (kWhole || first + 32 * e < n) && keep(first + 32 * e);
  uint32_t kept[kEach];
  int own = 0;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    kept[e] = __ballot_sync(0xffffffffu, keeps[e]);
    own += __popc(kept[e]);
  }
  if (lane == 0) sums[warp] = own;
  __syncthreads();
  int64_t before = before_warp(sums, warp, total);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (kept[e] >> lane & 1u) emit(before + __popc(kept[e] & ((1u << lane) - 1)), first + 32 * e);
    before += __popc(kept[e]);
  }
}

template <class Keep, class Emit>
__device__ int64_t team_select(int64_t* sums, int64_t n, const Keep& keep, const Emit& emit) {
  int64_t total = 0, base = 0;
  for (; n - base >= kTeamThreads * kBatch; base += kTeamThreads * kBatch)
    select_some<kBatch, true>(sums, base, n, &total, keep, emit);
  if (n - base > kTeamThreads) {
    select_some<kBatch, false>(sums, base, n, &total, keep, emit);
  } else if (n > base) {
    select_some<1, false>(sums, base, n, &total, keep, emit);
  }
  __syncthreads();
  return total;
}

/// Calls then(i, read(i)) for each i in [0, n). A thread reads kBatch elements before it calls then
/// for the first, so that the reads overlap.
template <class Read, class Then>
__device__ void team_batches(int64_t n, const Read& read, const Then& then) {
  __syncthreads();
  int64_t i = threadIdx.x;
  for (; i + kTeamThreads * (kBatch - 1) < n; i += kTeamThreads * kBatch) {
    decltype(read(i)) value[kBatch];
#pragma unroll
    for (int e = 0; e < kBatch; ++e) value[e] = read(i + kTeamThreads * e);
#pragma unroll
    for (int e = 0; e < kBatch; ++e) then(i + kTeamThreads * e, value[e]);
  }
  if (i + kTeamThreads < n) {
    decltype(read(i)) value[kBatch];
#pragma unroll
    for (int e = 0; e < kBatch; ++e)
      if (i + kTeamThreads * e < n) value[e] = read(i + kTeamThreads * e);
#pragma unroll
    for (int e = 0; e < kBatch; ++e)
      if (i + kTeamThreads * e < n) then(i + kTeamThreads * e, value[e]);
  } else if (i < n) {
    then(i, read(i));
  }
  __syncthreads();
}

/// Adds 1 to bins[bin(i)] for each i in [0, n) with bin(i) >= 0. Additions of a warp to one word
/// wait for each other, and numbers share their highest digits. Lanes with equal bins therefore add
/// once. A thread calls bin for kBatch elements before it counts the first.
template <class Bin>
__device__ void team_histogram(int64_t n, uint32_t* bins, const Bin& bin) {
  constexpr uint32_t kAll = 0xffffffffu;
  const uint32_t earlier_lanes = (1u << threadIdx.x % 32) - 1;
  const int64_t first = threadIdx.x / 32 * 32;
  __syncthreads();
  for (int64_t base = first; base < n; base += kTeamThreads * kBatch) {  // whole warps
    const int64_t i = base + threadIdx.x % 32;
    int at[kBatch];
#pragma unroll
    for (int e = 0; e < kBatch; ++e)
      at[e] = i + kTeamThreads * e < n ? bin(i + kTeamThreads * e) : -1;
#pragma unroll
    for (int e = 0; e < kBatch; ++e) {
      if (!__any_sync(kAll, at[e] >= 0)) continue;
      const uint32_t equal = __match_any_sync(kAll, at[e]);
      if (at[e] >= 0 && (equal & earlier_lanes) == 0) atomicAdd(bins + at[e], __popc(equal));
    }
  }
  __syncthreads();
}

}  // namespace wisp::cuda
