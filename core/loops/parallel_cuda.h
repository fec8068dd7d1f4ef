// The loops of core/loops/parallel.h on CUDA streams. They give the same bits, because partial
// results, lanes and trees are the same. Only core/loops/parallel.h includes this file. `counted`,
// if not null, is a device word that limits n.
#pragma once

#include <algorithm>

#include "core/cuda/check.h"
#include "core/device/device_work.h"
#include "core/loops/parallel.h"

namespace wisp::cuda {

constexpr int kThreads = 256;  // per block; a multiple of the warp size and of parallel::kLanes
constexpr int64_t kMaxBlocks = 4096;

static_assert(kThreads % parallel::kLanes == 0);

inline cudaStream_t handle(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}

/// Throws Error if the launches failed, otherwise counts them.
inline void launched(const char* loop, int kernels) {
  check(cudaGetLastError(), loop);
  count_device_work({.kernels = kernels});
}

inline unsigned blocks_for(int64_t n) {
  return static_cast<unsigned>(std::min((n + kThreads - 1) / kThreads, kMaxBlocks));
}

__device__ inline int64_t limit(int64_t n, const int64_t* counted) {
  return counted && *counted < n ? *counted : n;
}

__device__ inline int64_t first_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline int64_t index_stride() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

/// Number of a kernel's blocks that a multiprocessor must have room for; 0 if the kernel does not
/// say. With 0 the compiler saves registers and delays reads that should be ahead.
template <class Kernel>
constexpr int resident_blocks() {
  if constexpr (requires { Kernel::kResidentBlocks; }) {
    return Kernel::kResidentBlocks;
  } else {
    return 0;
  }
}

template <class Kernel>
__global__ void __launch_bounds__(kThreads, resident_blocks<Kernel>())
    run_for(int64_t n, const int64_t* counted, const __grid_constant__ Kernel kernel) {
  const int64_t end = limit(n, counted);
  for (int64_t i = first_index(); i < end; i += index_stride()) kernel(i);
}

template <class Kernel>
void launch_for(const Stream& stream, int64_t n, const int64_t* counted, const Kernel& kernel) {
  if (n <= 0) return;
  run_for<<<blocks_for(n), kThreads, 0, handle(stream)>>>(n, counted, kernel);
  launched("parallel_for", 1);
}

template <class Kernel>
__global__ void run_single(const __grid_constant__ Kernel kernel) {
  kernel();
}

template <class Kernel>
void launch_once(const Stream& stream, const Kernel& kernel) {
  run_single<<<1, 1, 0, handle(stream)>>>(kernel);
  launched("run_once", 1);
}

/// cpu_reduce_block over [begin, end) by one thread block; thread 0 has the result. All threads
/// evaluate map, a tile at a time, and the first kLanes threads combine in the order of the CPU.
template <class Kernel>
__device__ typename Kernel::Value reduce_block(int64_t begin, int64_t end, const Kernel& kernel) {
  using Value = typename Kernel::Value;
  alignas(Value) __shared__ unsigned char memory[kThreads * sizeof(Value)];
  Value* tile = reinterpret_cast<Value*>(memory);
  const int thread = static_cast<int>(threadIdx.x);
  Value lane = kernel.identity();
  for (int64_t i = begin; i < end; i += kThreads) {
    if (i + thread < end) tile[thread] = kernel.map(i + thread);
    __syncthreads();
    for (int j = thread; thread < parallel::kLanes && j < kThreads && i + j < end;
         j += parallel::kLanes)
      lane = kernel.combine(lane, tile[j]);
    __syncthreads();
  }
  tile[thread] = lane;
  for (int width = parallel::kLanes / 2; width > 0; width /= 2) {
    __syncthreads();
    if (thread < width) tile[thread] = kernel.combine(tile[thread], tile[thread + width]);
  }
  return tile[thread];
}

/// Reduces elements [b * block, (b + 1) * block) into out[b] in block b.
template <class Kernel>
__global__ void run_reduce(int64_t n, int64_t block, const Kernel kernel,
                           typename Kernel::Value* out) {
  const int64_t begin = blockIdx.x * block;
  const int64_t end = begin + block < n ? begin + block : n;
  const typename Kernel::Value result = reduce_block(begin, end, kernel);
  if (threadIdx.x == 0) out[blockIdx.x] = result;
}

/// Launches a reduction. If there are several partial results, they are in the stream's scratch
/// memory between the two kernels.
template <class Kernel>
void launch_reduce(const Stream& stream, int64_t n, const Kernel& kernel,
                   typename Kernel::Value* out) {
  using Value = typename Kernel::Value;
  const cudaStream_t queue = handle(stream);
  const int64_t block = parallel::reduce_block(n);
  if (n <= block) {
    run_reduce<<<1, kThreads, 0, queue>>>(n, block, kernel, out);
    return launched("parallel_reduce", 1);
  }
  const int64_t partials = (n + block - 1) / block;
  static_assert(parallel::kMaxPartials * sizeof(Value) <= Stream::kScratchBytes);
  Value* partial = reinterpret_cast<Value*>(stream.scratch());
  run_reduce<<<static_cast<unsigned>(partials), kThreads, 0, queue>>>(n, block, kernel, partial);
  run_reduce<<<1, kThreads, 0, queue>>>(partials, parallel::kMaxPartials,
                                        parallel::Partials<Kernel>{partial, kernel}, out);
  launched("parallel_reduce", 2);
}

}  // namespace wisp::cuda
