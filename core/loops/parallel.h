// The portability layer of three loops and a single call. A kernel is a struct at namespace scope
// with a WISP_HD call operator. The same object runs on the CPU (OpenMP, vectorised for the machine
// at hand) and, in a CUDA build, on CUDA streams, with equal bits. Results depend on n alone, never
// on the number of threads. Every call is one task of `stream`, and any thread that may use the
// stream may call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/device/stream.h"
#include "core/tensor/dtype.h"

// WISP_CLONES compiles a CPU loop once per instruction set and chooses the clone at program start.
// The kernel is inlined, because a call from a clone would reach code for the baseline. Sanitizers
// cannot run the choosing code, so their builds define WISP_NO_CLONES.
#if defined(WISP_NO_CLONES) || !defined(__x86_64__)
#define WISP_CLONES
#else
#define WISP_CLONES \
  __attribute__((flatten, target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#endif

namespace wisp {
namespace parallel {

constexpr int64_t kGrain = 1 << 14;  // fewest elements worth waking a thread
constexpr int kLanes = 16;
constexpr int64_t kMaxPartials = 1024;

/// Elements per partial result of a reduction. Depends on n alone.
WISP_HD inline int64_t reduce_block(int64_t n) {
  const int64_t least = (n + kMaxPartials - 1) / kMaxPartials;
  const int64_t block = (least + kLanes - 1) / kLanes * kLanes;
  return block < 4096 ? 4096 : block;
}

/// Launches of a reduction on a device. Each other loop of this file takes one.
inline int reduce_kernels(int64_t n) { return n > reduce_block(n) ? 2 : 1; }

/// Runs body(begin, end) for each `multiple` elements of [0, n); the last call has the rest. OpenMP
/// threads share the calls, but one thread makes all of them if n is below `least`.
template <class Body>
void cpu_ranges(int64_t n, int64_t multiple, const Body& body, int64_t least = 2 * kGrain) {
  const int64_t blocks = (n + multiple - 1) / multiple;
#pragma omp parallel for schedule(static) if (n >= least)
  for (int64_t part = 0; part < blocks; ++part)
    body(part * multiple, std::min(n, (part + 1) * multiple));
}

template <class Kernel>
WISP_CLONES void cpu_for(int64_t begin, int64_t end, const Kernel kernel) {
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) kernel(i);
}

/// Calls kernel.prefetch(i), if the kernel has it, for a loop at elements [i, i + kLanes).
template <class Kernel>
WISP_HD void prefetch(const Kernel& kernel, int64_t i) {
  if constexpr (requires { kernel.prefetch(i); }) {
    kernel.prefetch(i);
  }
}

/// Combines kernel.map(i) over [begin, end) on one thread, as a fixed tree of kLanes lanes. Kernels
/// that reduce a row each call it, too.
template <class Kernel>
WISP_HD inline typename Kernel::Value reduce_lanes(int64_t begin, int64_t end,
                                                   const Kernel& kernel) {
  typename Kernel::Value lane[kLanes];
  for (int j = 0; j < kLanes; ++j) lane[j] = kernel.identity();
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    prefetch(kernel, i);
    // without the pragma, g++ 12 miscompiles a map that reads memory under a condition
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) lane[j] = kernel.combine(lane[j], kernel.map(i + j));
  }
  for (int j = 0; i + j < end; ++j) lane[j] = kernel.combine(lane[j], kernel.map(i + j));
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lane[j] = kernel.combine(lane[j], lane[j + width]);
  }
  return lane[0];
}

template <class Kernel>
WISP_CLONES typename Kernel::Value cpu_reduce_block(int64_t begin, int64_t end,
                                                    const Kernel kernel) {
  return reduce_lanes(begin, end, kernel);
}

/// The kernel of a reduction's second level. Its map reads the partial results of the first level.
template <class Kernel>
struct Partials {
  using Value = typename Kernel::Value;
  const Value* partial;
  Kernel kernel;
  WISP_HD Value identity() const { return kernel.identity(); }
  WISP_HD Value map(int64_t i) const { return partial[i]; }
  WISP_HD Value combine(Value a, Value b) const { return kernel.combine(a, b); }
};

/// The result of a reduction over [begin, begin + n).
template <class Kernel>
typename Kernel::Value cpu_reduce_range(int64_t begin, int64_t n, const Kernel& kernel) {
  const int64_t block = reduce_block(n);
  typename Kernel::Value partial[kMaxPartials];
  cpu_ranges(n, block, [&](int64_t from, int64_t to) {
    partial[from / block] = cpu_reduce_block(begin + from, begin + to, kernel);
  });
  return cpu_reduce_block(0, (n + block - 1) / block, Partials<Kernel>{partial, kernel});
}

/// A mask whose bit j is the predicate of i + j.
template <class Keep>
inline uint64_t cpu_mask64(int64_t i, const Keep& keep) {
  uint8_t flag[64];
#pragma GCC ivdep
  for (int j = 0; j < 64; ++j) flag[j] = keep(i + j);
  uint64_t words[8];
  std::memcpy(words, flag, sizeof words);
  uint64_t mask = 0;
  for (int w = 0; w < 8; ++w)  // the product's highest byte has the lowest bits of all eight bytes
    mask |= (words[w] * 0x0102040810204080u >> 56) << (8 * w);
  return mask;
}

}  // namespace parallel
}  // namespace wisp

#ifdef __CUDACC__
#include "core/loops/parallel_cuda.h"  // uses the sizes and trees above
#endif

namespace wisp {

/// Calls kernel(i) for each i in [0, n), in any order. A call handles about `elements` elements,
/// which decides how many calls are worth a thread. A kernel that reads ahead
/// (core/loops/unrolled.h) may define kResidentBlocks. A GPU's multiprocessor then has room for
/// that number of its blocks, and the compiler may use all the registers left to each.
template <class Kernel>
void parallel_for(const Stream& stream, int64_t n, Kernel kernel, int64_t elements = 1) {
#ifdef __CUDACC__
  if (stream.device().is_cuda()) return cuda::launch_for(stream, n, nullptr, kernel);
#endif
  const int64_t grain = parallel::kGrain / std::clamp<int64_t>(elements, 1, parallel::kGrain);
  stream.launch([n, kernel, grain] {
    parallel::cpu_ranges(
        n, grain, [&](int64_t b, int64_t e) { parallel::cpu_for(b, e, kernel); }, 2 * grain);
  });
}

/// Calls kernel(i) for each i in [0, min(*n, capacity)); `n` is in device memory.
template <class Kernel>
void parallel_for_counted(const Stream& stream, const int64_t* n, int64_t capacity, Kernel kernel) {
#ifdef __CUDACC__
  if (stream.device().is_cuda()) return cuda::launch_for(stream, capacity, n, kernel);
#endif
  stream.launch([n, capacity, kernel] {
    parallel::cpu_ranges(std::min(*n, capacity), parallel::kGrain,
                         [&](int64_t b, int64_t e) { parallel::cpu_for(b, e, kernel); });
  });
}

/// Calls kernel() once on the device, for decisions that the host must not read back.
template <class Kernel>
void run_once(const Stream& stream, Kernel kernel) {
#ifdef __CUDACC__
  if (stream.device().is_cuda()) return cuda::launch_once(stream, kernel);
#endif
  stream.launch([kernel] { kernel(); });
}

/// Writes to *out the combination of kernel.map(i) over [0, n), as a fixed tree of 16 lanes that
/// depends on n alone. The kernel has a type Value, identity(), map(i) and combine(a, b). Its
/// prefetch(i), if it has one, is called for each 16 elements (core/prefetch.h).
template <class Kernel>
void parallel_reduce(const Stream& stream, int64_t n, Kernel kernel, typename Kernel::Value* out) {
#ifdef __CUDACC__
  if (stream.device().is_cuda()) return cuda::launch_reduce(stream, n, kernel, out);
#endif
  stream.launch([n, kernel, out] { *out = parallel::cpu_reduce_range(0, n, kernel); },
                parallel::reduce_kernels(n));
}

}  // namespace wisp
