// The loops of core/loops/parallel.h on CUDA streams. They give the same bits, because partial
// results, lanes, trees, masks and positions are the same. Only core/loops/parallel.h includes this
// file. `counted`, if not null, is a device word that limits n.
#pragma once

#include <algorithm>

#include "core/cuda/check.h"
#include "core/device/device_work.h"
#include "core/loops/parallel.h"

namespace wisp::cuda {

constexpr int kThreads = 256;  // per block; a multiple of the warp size and of parallel::kLanes
constexpr int64_t kMaxBlocks = 4096;
constexpr int kSharedBins = 4096;  // largest histogram in shared memory
constexpr int kScanThreads = 1024;

static_assert(kThreads % parallel::kLanes == 0 && parallel::kSelectChunk % kThreads == 0);

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

/// A histogram. Counts are integers, so the order of the additions changes nothing.
template <class Kernel>
__global__ void run_histogram(int64_t n, const int64_t* counted, const Kernel kernel,
                              uint32_t* bins, int bin_count) {
  __shared__ uint32_t shared[kSharedBins];
  const bool fits = bin_count <= kSharedBins;
  uint32_t* const count = fits ? shared : bins;
  const int thread = static_cast<int>(threadIdx.x);
  for (int b = thread; fits && b < bin_count; b += kThreads) shared[b] = 0;
  __syncthreads();
  const int64_t end = limit(n, counted);
  for (int64_t i = first_index(); i < end; i += index_stride()) {
    const int bin = kernel(i);
    if (bin >= 0) atomicAdd(count + bin, 1u);
  }
  __syncthreads();
  for (int b = thread; fits && b < bin_count; b += kThreads) {
    if (shared[b] > 0) atomicAdd(bins + b, shared[b]);
  }
}

template <class Kernel>
void launch_histogram(const Stream& stream, int64_t n, const int64_t* counted, const Kernel& kernel,
                      uint32_t* bins, int bin_count) {
  const cudaStream_t queue = handle(stream);
  const auto bytes = sizeof(uint32_t) * static_cast<size_t>(bin_count);
  WISP_CUDA_CHECK(cudaMemsetAsync(bins, 0, bytes, queue));
  if (n <= 0) return;
  run_histogram<<<blocks_for(n), kThreads, 0, queue>>>(n, counted, kernel, bins, bin_count);
  launched("parallel_histogram", 1);
}

constexpr int kChunkWords = static_cast<int>(parallel::kSelectChunk / 64);

/// The positions in the scratch of a selection over n elements. The scratch has a bit for each
/// element, then a count for each chunk.
__device__ inline int64_t* positions(uint64_t* masks, int64_t n) {
  return reinterpret_cast<int64_t*>(masks + (n + 63) / 64);
}

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

/// Writes the masks of chunk c, and the number of its set bits into the positions, in block c.
template <class Kernel>
__global__ void run_select_masks(int64_t n, const int64_t* counted, const Kernel kernel,
                                 uint64_t* masks) {
  const int64_t all = limit(n, counted);
  const int64_t begin = blockIdx.x * parallel::kSelectChunk;
  if (begin >= all) return;
  const int64_t end = begin + parallel::kSelectChunk < all ? begin + parallel::kSelectChunk : all;
  const int64_t selected = chunk_masks(begin, end, kernel, reinterpret_cast<uint32_t*>(masks));
  if (threadIdx.x == 0) positions(masks, all)[blockIdx.x] = selected;
}

/// Turns the counts of chunks into positions, in one block. The sum starts at *count and ends
/// there.
static __global__ void run_select_scan(int64_t n, const int64_t* counted, uint64_t* masks,
                                       int64_t* count) {
  __shared__ int64_t sums[kScanThreads];
  const int64_t all = limit(n, counted);
  const int64_t chunks = (all + parallel::kSelectChunk - 1) / parallel::kSelectChunk;
  int64_t* position = positions(masks, all);
  const int64_t each = (chunks + kScanThreads - 1) / kScanThreads;
  const int64_t thread = threadIdx.x;
  const int64_t begin = thread * each;
  const int64_t end = begin + each < chunks ? begin + each : chunks;
  int64_t own = 0;
  for (int64_t chunk = begin; chunk < end; ++chunk) own += position[chunk];
  sums[thread] = own;
  __syncthreads();
  for (int64_t step = 1; step < kScanThreads; step *= 2) {
    const int64_t before = thread >= step ? sums[thread - step] : 0;
    __syncthreads();
    sums[thread] += before;
    __syncthreads();
  }
  const int64_t first = *count;
  __syncthreads();
  int64_t total = first + sums[thread] - own;
  for (int64_t chunk = begin; chunk < end; ++chunk) {
    const int64_t here = position[chunk];
    position[chunk] = total;
    total += here;
  }
  if (thread == kScanThreads - 1) *count = first + sums[thread];
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

/// Emits the selected elements of chunk c, at the chunk's position, in block c.
template <class Kernel>
__global__ void run_select_emit(int64_t n, const int64_t* counted, const Kernel kernel,
                                uint64_t* masks) {
  const int64_t all = limit(n, counted);
  const int64_t begin = blockIdx.x * parallel::kSelectChunk;
  if (begin >= all) return;
  chunk_emit(begin, (all + 63) / 64, positions(masks, all)[blockIdx.x], kernel, masks);
}

template <class Kernel>
void launch_select(const Stream& stream, int64_t n, const int64_t* counted, const Kernel& kernel,
                   int64_t* count, void* scratch) {
  if (n <= 0) return;
  const cudaStream_t queue = handle(stream);
  const auto chunks =
      static_cast<unsigned>((n + parallel::kSelectChunk - 1) / parallel::kSelectChunk);
  auto* masks = static_cast<uint64_t*>(scratch);
  run_select_masks<<<chunks, kThreads, 0, queue>>>(n, counted, kernel, masks);
  run_select_scan<<<1, kScanThreads, 0, queue>>>(n, counted, masks, count);
  run_select_emit<<<chunks, kThreads, 0, queue>>>(n, counted, kernel, masks);
  launched("parallel_select", parallel::kSelectKernels);
}

}  // namespace wisp::cuda
