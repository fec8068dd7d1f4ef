// Small teams of half a warp each, and the loop over them. A phase begins and ends with a barrier
// of the half warp. Only core/loops/parallel_small_teams.h includes this file.
#pragma once

#include "core/loops/parallel_cuda.h"

namespace wisp::cuda {

constexpr int kSmallTeams = kThreads / parallel::kLanes;  // teams per block
static_assert(32 % parallel::kLanes == 0);

/// A small team with the interface of LoneThread (core/loops/parallel_small_teams.h).
class SmallTeam {
 public:
  template <class T>
  class PerLane {
   public:
    __device__ T& operator[](int64_t) { return own_; }

   private:
    T own_ = {};
  };

  __device__ SmallTeam()
      : lane_(static_cast<int>(threadIdx.x) % parallel::kLanes),
        mask_(0xffffu << (threadIdx.x % 32 / parallel::kLanes * parallel::kLanes)) {}

  template <class Body>
  __device__ void each(int64_t n, const Body& body) const {
    __syncwarp(mask_);
    for (int64_t i = lane_; i < n; i += parallel::kLanes) body(i);
    __syncwarp(mask_);
  }
  template <int64_t kCount, class Of>
  __device__ void write(void* to, const Of& of) const {
    each(kCount, [&](int64_t i) {
      const auto value = of(i);
      memcpy(static_cast<std::byte*>(to) + i * int64_t{sizeof value}, &value, sizeof value);
    });
  }
  template <class Read, class Bit, class Then>
  __device__ void write_bits(void* to, const Read& read, const Bit& bit, const Then& then) const {
    constexpr int kEach = 64 / parallel::kLanes;
    __syncwarp(mask_);
    decltype(read(int64_t{})) x[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) x[e] = read(lane_ + parallel::kLanes * e);
    uint64_t bits = 0;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const uint32_t kept = __ballot_sync(mask_, bit(lane_ + parallel::kLanes * e, x[e]));
      bits |= static_cast<uint64_t>(kept >> (__ffs(mask_) - 1) & 0xffffu) << parallel::kLanes * e;
    }
    if (lane_ < 8) static_cast<uint8_t*>(to)[lane_] = static_cast<uint8_t>(bits >> 8 * lane_);
#pragma unroll
    for (int e = 0; e < kEach; ++e) then(lane_ + parallel::kLanes * e, x[e]);
    __syncwarp(mask_);
  }
  template <class Body>
  __device__ void once(const Body& body) const {
    each(1, [&](int64_t) { body(); });
  }
  template <class Body>
  __device__ void lanes(const Body& body) const {
    body(lane_);
  }
  template <class T, class Op>
  __device__ T fold(PerLane<T>& value, const Op& op) const {
    T own = value[lane_];
    for (int half = parallel::kLanes / 2; half > 0; half /= 2)
      own = op.combine(own, __shfl_down_sync(mask_, own, half, parallel::kLanes));
    return __shfl_sync(mask_, own, 0, parallel::kLanes);
  }
  template <class T>
  __device__ T sum(PerLane<T>& value) const {
    T total{};
    for (int lane = 0; lane < parallel::kLanes; ++lane)
      total += __shfl_sync(mask_, value[lane_], lane, parallel::kLanes);
    return total;
  }

 private:
  int lane_;
  unsigned mask_;
};
static_assert(parallel::kLanes == 16, "of the masks");

template <class Kernel>
__global__ void __launch_bounds__(kThreads, resident_blocks<Kernel>())
    run_small_teams(int64_t items, const Kernel kernel) {
  using Shared = typename Kernel::Shared;
  alignas(Shared) __shared__ unsigned char memory[kSmallTeams * sizeof(Shared)];
  const int slot = static_cast<int>(threadIdx.x) / parallel::kLanes;
  Shared& shared = reinterpret_cast<Shared*>(memory)[slot];
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kSmallTeams;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kSmallTeams + slot; item < items;
       item += stride)
    kernel(SmallTeam(), item, shared);
}

template <class Kernel>
void launch_small_teams(const Stream& stream, int64_t items, const Kernel& kernel) {
  if (items <= 0) return;
  run_small_teams<<<blocks_for(items * parallel::kLanes), kThreads, 0, handle(stream)>>>(items,
                                                                                         kernel);
  launched("parallel_small_teams", 1);
}

/// run_small_teams for several kernels.
template <class Kernel>
__global__ void __launch_bounds__(kThreads)
    run_small_teams_of(const __grid_constant__ parallel::SmallTeamsTable<Kernel> table) {
  using Shared = typename Kernel::Shared;
  alignas(Shared) __shared__ unsigned char memory[kSmallTeams * sizeof(Shared)];
  const int slot = static_cast<int>(threadIdx.x) / parallel::kLanes;
  Shared& shared = reinterpret_cast<Shared*>(memory)[slot];
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kSmallTeams;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kSmallTeams + slot; item < table.items;
       item += stride) {
    const int64_t at = row_of(item, table.count, [&](int64_t row) { return table.first[row]; });
    const Kernel kernel = table.kernel(at);
    kernel(SmallTeam(), item - table.first[at], shared);
  }
}

template <class Kernel>
void launch_small_teams(const Stream& stream, const parallel::SmallTeamsTable<Kernel>& table) {
  run_small_teams_of<Kernel>
      <<<blocks_for(table.items * parallel::kLanes), kThreads, 0, handle(stream)>>>(table);
  launched("parallel_small_teams", 1);
}

}  // namespace wisp::cuda
