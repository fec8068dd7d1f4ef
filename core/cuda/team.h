// The loop over teams that are thread blocks. Only core/loops/parallel_teams.h includes this file.
#pragma once

#include "core/cuda/block_reduce.h"
#include "core/cuda/team_phases.h"
#include "core/loops/parallel_cuda.h"

namespace wisp::cuda {

template <class Kernel>
__device__ typename Kernel::Value team_reduce(int64_t n, const Kernel& kernel) {
  using Value = typename Kernel::Value;
  alignas(Value) __shared__ unsigned char partial_memory[parallel::kMaxPartials * sizeof(Value)];
  Value* partial = reinterpret_cast<Value*>(partial_memory);
  const int64_t block = parallel::reduce_block(n);
  int64_t blocks = 0;
  for (int64_t begin = 0; begin < n; begin += block, ++blocks) {
    const int64_t end = begin + block < n ? begin + block : n;
    const Value value = block_reduce_lanes<kTeamThreads>(begin, end, kernel);
    if (threadIdx.x == 0) partial[blocks] = value;
  }
  __syncthreads();
  return block_reduce_lanes<kTeamThreads>(0, blocks, parallel::Partials<Kernel>{partial, kernel});
}

/// Runs the team of item b in block b.
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
