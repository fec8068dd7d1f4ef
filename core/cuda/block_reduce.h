// parallel::reduce_lanes by a block of threads, with the same bits. Only CUDA's loops include this
// file.
#pragma once

#include "core/loops/parallel.h"

namespace wisp::cuda {

/// The shared memory of a block of kBlock threads that reduces. The first warp combines a tile. The
/// other warps evaluate map for the next tile, several elements per thread, so that their reads
/// overlap.
template <int kBlock, class Value>
struct LaneTiles {
  static constexpr int kMappers = kBlock - 32;
  static constexpr int kFit = static_cast<int>(8192 / (kMappers * sizeof(Value)));
  static constexpr int kEach = kFit < 1 ? 1 : kFit > 4 ? 4 : kFit;
  static constexpr int kTile = kMappers * kEach;
  static_assert(kTile % parallel::kLanes == 0);

  Value tile[2][kTile];
  Value result;
};

/// The shared memory for all reductions of a kernel.
template <int kBlock, class Value>
__device__ LaneTiles<kBlock, Value>& lane_tiles() {
  using Tiles = LaneTiles<kBlock, Value>;
  alignas(Tiles) __shared__ unsigned char memory[sizeof(Tiles)];
  return *reinterpret_cast<Tiles*>(memory);
}

/// Writes map(i + j) to to[j] for each element j of `mapper` in a tile; elements from `end` on are
/// left out.
template <class Tiles, class Kernel>
__device__ void map_tile(int mapper, int64_t i, int64_t end, const Kernel& kernel,
                         typename Kernel::Value* to) {
  if (end - i >= Tiles::kTile) {
    typename Kernel::Value value[Tiles::kEach];
#pragma unroll
    for (int e = 0; e < Tiles::kEach; ++e) value[e] = kernel.map(i + e * Tiles::kMappers + mapper);
#pragma unroll
    for (int e = 0; e < Tiles::kEach; ++e) to[e * Tiles::kMappers + mapper] = value[e];
  } else {
    for (int j = mapper; j < end - i; j += Tiles::kMappers) to[j] = kernel.map(i + j);
  }
}

/// Combines a lane's value with its elements of a tile of `count` elements.
template <class Tiles, class Kernel>
__device__ void combine_tile(int lane, int64_t count, const Kernel& kernel,
                             const typename Kernel::Value* tile, typename Kernel::Value& value) {
  if (count >= Tiles::kTile) {
#pragma unroll 16
    for (int row = 0; row < Tiles::kTile / parallel::kLanes; ++row)
      value = kernel.combine(value, tile[row * parallel::kLanes + lane]);
  } else {
    for (int j = lane; j < count; j += parallel::kLanes) value = kernel.combine(value, tile[j]);
  }
}

/// The result of parallel::reduce_lanes over [begin, end), in the order of the CPU, for all threads
/// of a block of kBlock.
template <int kBlock, class Kernel>
__device__ typename Kernel::Value block_reduce_lanes(int64_t begin, int64_t end,
                                                     const Kernel& kernel) {
  using Value = typename Kernel::Value;
  using Tiles = LaneTiles<kBlock, Value>;
  Tiles& tiles = lane_tiles<kBlock, Value>();
  const int thread = static_cast<int>(threadIdx.x);
  Value lane = kernel.identity();
  int filled = 0;
  for (int64_t i = begin;; i += Tiles::kTile, filled = 1 - filled) {
    if (thread >= 32) {
      map_tile<Tiles>(thread - 32, i, end, kernel, tiles.tile[filled]);
    } else if (thread < parallel::kLanes && i > begin) {
      combine_tile<Tiles>(thread, end - (i - Tiles::kTile), kernel, tiles.tile[1 - filled], lane);
    }
    __syncthreads();
    if (i >= end) break;
  }
  if (thread < 32) {
    Value* tree = tiles.tile[0];
    if (thread < parallel::kLanes) tree[thread] = lane;
    for (int width = parallel::kLanes / 2; width > 0; width /= 2) {
      __syncwarp();
      if (thread < width) tree[thread] = kernel.combine(tree[thread], tree[thread + width]);
    }
    if (thread == 0) tiles.result = tree[0];
  }
  __syncthreads();
  return tiles.result;
}

}  // namespace wisp::cuda
