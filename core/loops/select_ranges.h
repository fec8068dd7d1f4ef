// A stable selection of elements in many ranges at once, in two launches whatever their number. Any
// thread that may use the stream may call.
#pragma once

#include <cstdint>

#include "core/loops/device_table.h"
#include "core/loops/parallel.h"

namespace wisp {
namespace parallel {

constexpr int64_t kSelectChunk = 1 << 13;  // elements per count of a selection; a multiple of 64

}  // namespace parallel

/// A range of elements and its group. A group is neighbouring ranges whose selected elements are
/// counted together. Ranges are cut into chunks of parallel::kSelectChunk, numbered over all
/// ranges.
struct SelectRange {
  int64_t numel = 0;
  int64_t first_chunk = 0, first_word = 0;  // words have a bit for each element
  int64_t group_begin = 0, group_end = 0;   // chunks of the group

  WISP_HD static int64_t chunks(int64_t numel) {
    return (numel + parallel::kSelectChunk - 1) / parallel::kSelectChunk;
  }
  WISP_HD static int64_t words(int64_t numel) { return (numel + 63) / 64; }
  WISP_HD int64_t begin_of(int64_t chunk) const {
    return (chunk - first_chunk) * parallel::kSelectChunk;
  }
  WISP_HD int64_t end_of(int64_t chunk) const {
    const int64_t end = begin_of(chunk) + parallel::kSelectChunk;
    return end < numel ? end : numel;
  }
};

/// A table of rows in device memory, each a SelectRange, with the scratch of a selection.
template <class Row>
struct SelectRanges {
  const Row* row;
  int64_t count, chunks, numel;
  uint64_t* masks;    // mask words of all ranges
  int64_t* selected;  // count in each chunk, then its first position

  /// The index of the row that contains a chunk.
  WISP_HD int64_t of(int64_t chunk) const {
    return row_of(chunk, count, [this](int64_t at) { return row[at].first_chunk; });
  }
};

namespace parallel {

constexpr int kSelectRangesKernels = 2;  // launches on a device

/// Evaluates the predicate for [begin, end), 64 elements at a time, into mask words. Returns the
/// number of set bits.
template <class Kernel>
WISP_CLONES int64_t cpu_select_masks(int64_t begin, int64_t end, const Kernel kernel,
                                     uint64_t* masks) {
  int64_t count = 0;
  int64_t i = begin;
  for (; i + 64 <= end; i += 64) {
    for (int j = 0; j < 64; j += kLanes) prefetch(kernel, i + j);
    const uint64_t mask = cpu_mask64(i, kernel);
    count += __builtin_popcountll(mask);
    masks[i / 64] = mask;
  }
  if (i < end) {
    uint64_t mask = 0;
    for (int64_t j = 0; i + j < end; ++j) mask |= static_cast<uint64_t>(kernel(i + j)) << j;
    masks[i / 64] = mask;
    count += __builtin_popcountll(mask);
  }
  return count;
}

/// The limit of positions that a selection's kernel emits.
template <class Kernel>
WISP_HD int64_t capacity_of(const Kernel& kernel) {
  if constexpr (requires { kernel.capacity; }) {
    return kernel.capacity;
  } else {
    return INT64_MAX;
  }
}

template <class Kernel>
void cpu_select_emit(int64_t begin, int64_t end, int64_t position, const Kernel& kernel,
                     const uint64_t* masks) {
  const int64_t capacity = capacity_of(kernel);
  for (int64_t i = begin; i < end; i += 64) {
    for (uint64_t mask = masks[i / 64]; mask; mask &= mask - 1) {
      if (position >= capacity) return;
      kernel.emit(position++, i + __builtin_ctzll(mask));
    }
  }
}

template <class Kernel>
WISP_HD bool is_off(const Kernel& kernel) {
  if constexpr (requires { kernel.off(); }) {
    return kernel.off();
  } else {
    return false;
  }
}

template <class Row, class KernelOf>
void cpu_select_ranges(const SelectRanges<Row>& ranges, const KernelOf& kernel_of) {
  const int64_t least = ranges.numel >= 2 * kGrain ? 0 : ranges.chunks + 1;
  const auto each_chunk = [&](const auto& visit) {
    cpu_ranges(
        ranges.chunks, 1,
        [&](int64_t from, int64_t to) {
          for (int64_t chunk = from; chunk < to; ++chunk) {
            const int64_t at = ranges.of(chunk);
            const auto kernel = kernel_of(at);
            if (!is_off(kernel))
              visit(chunk, static_cast<const SelectRange&>(ranges.row[at]), kernel);
          }
        },
        least);
  };
  each_chunk([&](int64_t chunk, const SelectRange& range, const auto& kernel) {
    ranges.selected[chunk] = cpu_select_masks(range.begin_of(chunk), range.end_of(chunk), kernel,
                                              ranges.masks + range.first_word);
  });
  int64_t total = 0;
  for (int64_t at = 0; at < ranges.count; ++at) {
    const SelectRange& range = ranges.row[at];
    const auto kernel = kernel_of(at);
    if (is_off(kernel)) continue;
    if (range.first_chunk == range.group_begin) total = 0;
    const int64_t end = range.first_chunk + SelectRange::chunks(range.numel);
    for (int64_t chunk = range.first_chunk; chunk < end; ++chunk) {
      const int64_t here = ranges.selected[chunk];
      ranges.selected[chunk] = total;
      total += here;
    }
    if (end == range.group_end) *kernel.count() = total;
  }
  each_chunk([&](int64_t chunk, const SelectRange& range, const auto& kernel) {
    cpu_select_emit(range.begin_of(chunk), range.end_of(chunk), ranges.selected[chunk], kernel,
                    ranges.masks + range.first_word);
  });
}

}  // namespace parallel
}  // namespace wisp

#ifdef __CUDACC__
#include "core/cuda/select_ranges.h"
#endif

namespace wisp {

/// A stable compaction of each group. kernel_of(r) is the kernel of row r, whose elements i are
/// counted from the range's begin. kernel(i) is asked exactly once whether i is selected, and may
/// change state that belongs to i; prefetch(i) is as in parallel_reduce. kernel.emit(position, i)
/// is called for each selected i. Positions start at 0 in each group and rise with i. If the kernel
/// has a member `capacity`, only positions below it are emitted. *kernel.count() gets the group's
/// number of selected elements. A group whose kernels have off() == true is left unchanged.
template <class Row, class KernelOf>
void parallel_select_ranges(const Stream& stream, const SelectRanges<Row>& ranges,
                            KernelOf kernel_of) {
#ifdef __CUDACC__
  if (stream.device().is_cuda()) return cuda::launch_select_ranges(stream, ranges, kernel_of);
#endif
  stream.launch([=] { parallel::cpu_select_ranges(ranges, kernel_of); },
                parallel::kSelectRangesKernels);
}

}  // namespace wisp
