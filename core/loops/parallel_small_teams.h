// A loop over neighbouring items of some hundred elements, each processed by a small team of kLanes
// threads. On CUDA a small team is half a warp, so that neighbouring threads read neighbouring
// elements. On the CPU it is one thread, and the lanes are those of its vector registers. A kernel
// is written once, for any kind of team:
//   struct Shared { … };  // the team's shared state, uninitialised
//   template <class Team>
//   WISP_HD void operator()(const Team& team, int64_t item, Shared& shared) const;
// All lanes make the same calls with the same arguments. Results do not depend on the order of
// lanes. Any thread that may use the stream may call.
#pragma once

#include "core/loops/device_table.h"
#include "core/loops/parallel_teams.h"

namespace wisp {

/// A small team of one thread.
class LoneThread {
 public:
  /// A value per lane. Element l is for the team's work in lane l.
  template <class T>
  class PerLane {
   public:
    WISP_HD T& operator[](int64_t lane) { return value_[lane]; }

   private:
    T value_[parallel::kLanes] = {};
  };

  /// A phase: calls body(i) for each i in [0, n), in lane i % kLanes. No call reads or writes an
  /// element that another call writes. Later phases may read the results in any lane.
  template <class Body>
  WISP_HD void each(int64_t n, const Body& body) const {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) body(i);
  }
  /// A phase: writes of(i) for each i in [0, kCount) to `to`. of(i) reads nothing of `to` except
  /// element i.
  template <int64_t kCount, class Of>
  WISP_HD void write(void* to, const Of& of) const {
    decltype(of(int64_t{})) value[kCount];  // in registers: stores to `to` would prevent that
    for (int64_t i = 0; i < kCount; ++i) value[i] = of(i);
    memcpy(to, value, sizeof value);
  }
  /// A phase over i in [0, 64) with x = read(i). It sets bit i of `to` to bit(i, x), and calls
  /// then(i, x). then(i, x) may write the memory that read(i) reads. A lane may read all of its
  /// elements before it writes.
  template <class Read, class Bit, class Then>
  WISP_HD void write_bits(void* to, const Read& read, const Bit& bit, const Then& then) const {
    uint64_t bits = 0;
#ifndef __CUDA_ARCH__
    bits = parallel::cpu_mask64(0, [&](int64_t i) {
      const auto x = read(i);
      then(i, x);
      return bit(i, x);
    });
#endif
    memcpy(to, &bits, sizeof bits);
  }
  /// A phase: one lane calls body().
  template <class Body>
  WISP_HD void once(const Body& body) const {
    body();
  }
  /// Calls body(l) for each lane. It reads only writes of its own lane and of earlier phases.
  template <class Body>
  WISP_HD void lanes(const Body& body) const {
#pragma omp simd
    for (int64_t lane = 0; lane < parallel::kLanes; ++lane) body(lane);
  }
  /// Combines all lanes' values by op.combine(a, b), as a tree that combines one half with the
  /// other at each level.
  template <class T, class Op>
  WISP_HD T fold(PerLane<T>& value, const Op& op) const {
    return fold_half<parallel::kLanes / 2>(value, op);
  }
  /// Adds up all lanes' values in the order of lanes.
  template <class T>
  WISP_HD T sum(PerLane<T>& value) const {
    T total{};
    for (int64_t lane = 0; lane < parallel::kLanes; ++lane) total += value[lane];
    return total;
  }

 private:
  template <int64_t kHalf, class T, class Op>
  WISP_HD static T fold_half(PerLane<T>& value, const Op& op) {
#pragma omp simd
    for (int64_t lane = 0; lane < kHalf; ++lane)
      value[lane] = op.combine(value[lane], value[lane + kHalf]);
    if constexpr (kHalf > 1) return fold_half<kHalf / 2>(value, op);
    return value[0];
  }
};

/// A small team of one thread that visits elements and lanes in the order of ShuffledTeams.
class ShuffledThread : public LoneThread {
 public:
  WISP_HD explicit ShuffledThread(uint32_t order) : order_(order) {}

  template <class Body>
  WISP_HD void each(int64_t n, const Body& body) const {
#ifndef __CUDA_ARCH__
    for (const int64_t i : parallel::shuffled(order_, n)) body(i);
#endif
  }
  template <int64_t kCount, class Of>
  WISP_HD void write(void* to, const Of& of) const {
    each(kCount, [&](int64_t i) {
      const auto value = of(i);
      memcpy(static_cast<std::byte*>(to) + i * int64_t{sizeof value}, &value, sizeof value);
    });
  }
  template <class Read, class Bit, class Then>
  WISP_HD void write_bits(void* to, const Read& read, const Bit& bit, const Then& then) const {
    uint64_t bits = 0;
    each(64, [&](int64_t i) {
      const auto x = read(i);
      bits |= static_cast<uint64_t>(bit(i, x)) << i;
      then(i, x);
    });
    memcpy(to, &bits, sizeof bits);
  }
  template <class Body>
  WISP_HD void lanes(const Body& body) const {
    each(parallel::kLanes, body);
  }

 private:
  uint32_t order_;
};

namespace parallel {

template <class Kernel>
WISP_CLONES void cpu_small_teams(int64_t begin, int64_t end, const Kernel kernel) {
  for (int64_t item = begin; item < end; ++item) {
    typename Kernel::Shared shared;
    kernel(LoneThread(), item, shared);
  }
}

template <class Kernel>
void cpu_shuffled_teams(int64_t begin, int64_t end, const Kernel& kernel, uint32_t order) {
  for (int64_t item = begin; item < end; ++item) {
    typename Kernel::Shared shared;
    kernel(ShuffledThread(order), item, shared);
  }
}

/// parallel_small_teams on the CPU.
template <class Kernel>
void cpu_small_teams(int64_t items, const Kernel& kernel, int64_t elements, uint32_t order) {
  const int64_t grain = kGrain / std::clamp<int64_t>(elements, 1, kGrain);
  cpu_ranges(
      items, grain,
      [&](int64_t b, int64_t e) {
        if (order != 0) return cpu_shuffled_teams(b, e, kernel, order);
        cpu_small_teams(b, e, kernel);
      },
      2 * grain);
}

/// A table of kernels as bytes of one argument. Items are numbered over all kernels.
template <class Kernel>
struct SmallTeamsTable {
  static_assert(std::is_trivially_copyable_v<Kernel> && alignof(Kernel) <= 8);
  static constexpr int64_t kBytes = (sizeof(Kernel) + 7) / 8 * 8;
  static constexpr int64_t kMost = 3600 / (kBytes + 16);  // an argument has 4 KB

  int64_t count = 0, items = 0;
  int64_t first[kMost]{}, elements[kMost]{};
  alignas(8) std::byte bytes[kMost * kBytes]{};

  WISP_HD Kernel kernel(int64_t at) const {
    return *reinterpret_cast<const Kernel*>(bytes + at * kBytes);
  }
};

}  // namespace parallel
}  // namespace wisp

#ifdef __CUDACC__
#include "core/cuda/small_team.h"
#endif

namespace wisp {

/// Calls kernel(team, item, shared) for each item in [0, items), in any order. An item has about
/// `elements` elements, which decides how many items are worth a thread of the CPU. kResidentBlocks
/// is as for parallel_for.
template <class Kernel>
void parallel_small_teams(const Stream& stream, int64_t items, Kernel kernel, int64_t elements) {
#ifdef __CUDACC__
  if (stream.device().is_cuda()) return cuda::launch_small_teams(stream, items, kernel);
#endif
  stream.launch([items, kernel, elements, order = int64_t{parallel::team_order()}] {
    parallel::cpu_small_teams(items, kernel, elements, static_cast<uint32_t>(order));
  });
}

/// A batch of parallel_small_teams calls with kernels of one type, in as few launches as arguments
/// allow. finish() launches the added calls, or add() if an argument is full. Lives on one thread's
/// stack.
template <class Kernel>
class SmallTeams {
 public:
  explicit SmallTeams(Stream stream) : stream_(std::move(stream)) {}

  void add(int64_t items, Kernel kernel, int64_t elements) {
    if (items <= 0) return;
    if (table_.count == table_.kMost) finish();
    const int64_t at = table_.count++;
    table_.first[at] = table_.items;
    table_.elements[at] = elements;
    table_.items += items;
    Stream::clear_padding(kernel);
    std::memcpy(table_.bytes + at * table_.kBytes, &kernel, sizeof kernel);
  }
  void finish() {
    if (table_.count == 0) return;
    launch();
    table_.count = table_.items = 0;
  }

 private:
  void launch() {
#ifdef __CUDACC__
    if (stream_.device().is_cuda()) return cuda::launch_small_teams<Kernel>(stream_, table_);
#endif
    stream_.launch([table = table_, order = int64_t{parallel::team_order()}] {
      for (int64_t at = 0; at < table.count; ++at) {
        const int64_t end = at + 1 < table.count ? table.first[at + 1] : table.items;
        parallel::cpu_small_teams(end - table.first[at], table.kernel(at), table.elements[at],
                                  static_cast<uint32_t>(order));
      }
    });
  }

  Stream stream_;
  parallel::SmallTeamsTable<Kernel> table_;
};

}  // namespace wisp
