// A loop like those of core/loops/parallel.h, over items of some hundred elements that lie side by
// side: kLanes threads take an item together, a small team. On CUDA it is half a warp, so that
// neighbours are read by neighbours; on the CPU it is one thread, and the lanes are those of its
// vector registers. A kernel is written once, for any kind of team:
//   struct Shared { … };  // what the team has in common, uninitialised
//   template <class Team>
//   WISP_HD void operator()(const Team& team, int64_t item, Shared& shared) const;
// All lanes make the same calls with the same arguments. Results depend on no order of theirs.
#pragma once

#include "core/loops/device_table.h"
#include "core/loops/parallel_teams.h"

namespace wisp {

/// A small team of one thread.
class LoneThread {
 public:
  /// A value of each lane's own: element l is for what the team does in lane l.
  template <class T>
  class PerLane {
   public:
    WISP_HD T& operator[](int64_t lane) { return value_[lane]; }

   private:
    T value_[parallel::kLanes] = {};
  };

  /// body(i) for each i in [0, n), in lane i % kLanes; none touches what another writes. A phase:
  /// what is written in one may be read from the next on, in any lane.
  template <class Body>
  WISP_HD void each(int64_t n, const Body& body) const {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) body(i);
  }
  /// `to` becomes the values of(i) for each i in [0, kCount), of which none reads `to` but at its
  /// own place; a phase.
  template <int64_t kCount, class Of>
  WISP_HD void write(void* to, const Of& of) const {
    decltype(of(int64_t{})) value[kCount];  // stores to `to` would keep them from registers
    for (int64_t i = 0; i < kCount; ++i) value[i] = of(i);
    memcpy(to, value, sizeof value);
  }
  /// Of x = read(i), for each i in [0, 64): bit i of `to` becomes bit(i, x), and then(i, x) is
  /// called, which may write what its own read(i) has read. A lane may read all of its elements
  /// before it writes. A phase.
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
  /// body(), by one lane; a phase.
  template <class Body>
  WISP_HD void once(const Body& body) const {
    body();
  }
  /// body(l) for each lane, which reads what its own lane has written, and what phases have.
  template <class Body>
  WISP_HD void lanes(const Body& body) const {
#pragma omp simd
    for (int64_t lane = 0; lane < parallel::kLanes; ++lane) body(lane);
  }
  /// All lanes' values by op.combine(a, b), as a tree: half of them with the other half, and so on.
  template <class T, class Op>
  WISP_HD T fold(PerLane<T>& value, const Op& op) const {
    return fold_half<parallel::kLanes / 2>(value, op);
  }
  /// All lanes' values added up in their order.
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

/// One whose elements and lanes come in the order of ShuffledTeams.
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

/// All of parallel_small_teams, on the CPU.
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

/// Kernels as bytes of one argument, whose items are numbered through all.
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

/// kernel(team, item, shared) for each item in [0, items), in any order. An item has about
/// `elements` elements, which decides how many are worth a thread of the CPU's. kResidentBlocks is
/// as for parallel_for.
template <class Kernel>
void parallel_small_teams(const Stream& stream, int64_t items, Kernel kernel, int64_t elements) {
#ifdef __CUDACC__
  if (stream.device().is_cuda()) return cuda::launch_small_teams(stream, items, kernel);
#endif
  stream.launch([items, kernel, elements, order = int64_t{parallel::team_order()}] {
    parallel::cpu_small_teams(items, kernel, elements, static_cast<uint32_t>(order));
  });
}

/// Calls of parallel_small_teams with kernels of one type, as few launches as their arguments have
/// room for: what is added is launched by finish(), or earlier. Lives on one thread's stack while
/// it is used.
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
