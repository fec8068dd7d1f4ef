// A loop over items that need several steps each. A team of threads takes an item through phases;
// no thread begins a phase before all have ended the last. On CUDA a team is a thread block. On the
// CPU it is one thread, and OpenMP threads share the items. Results depend neither on the number of
// a team's threads nor on their order. Any thread that may use the stream may call.
#pragma once

#include <omp.h>

#include <vector>

#include "core/loops/parallel.h"

#ifdef __CUDACC__
#include "core/cuda/team.h"
#endif

namespace wisp {

/// A test switch. While it lives, a CPU's threads take teams, and teams the elements of a phase, in
/// an order drawn with `seed`, which is not 0. Only one may live at a time.
class ShuffledTeams {
 public:
  explicit ShuffledTeams(uint32_t seed);
  ~ShuffledTeams();
  ShuffledTeams(const ShuffledTeams&) = delete;
  ShuffledTeams& operator=(const ShuffledTeams&) = delete;
};

namespace parallel {

uint32_t team_order();  // seed of ShuffledTeams, or 0
std::vector<int64_t> shuffled(uint32_t seed, int64_t n);

}  // namespace parallel

/// A kernel's view of its team. Each call is a phase; all threads make the same calls with the same
/// arguments. Writes of one phase may be read after it, in the next phase or between phases.
class Team {
 public:
  /// `sums` is memory of a CUDA team. `order` is 0, or the seed of ShuffledTeams on a CPU.
  WISP_HD explicit Team(int64_t* sums, uint32_t order = 0) : sums_(sums), order_(order) {}

  /// Calls body(i) for each i in [0, n). No call reads or writes an element that another call
  /// writes.
  template <class Body>
  WISP_HD void each(int64_t n, const Body& body) const {
#ifdef __CUDA_ARCH__
    cuda::team_each(n, body);
#else
    if (order_ != 0) {
      for (const int64_t i : parallel::shuffled(order_, n)) body(i);
      return;
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) body(i);
#endif
  }

  /// Calls write(i, read(i)) for each i in [0, n). read(i) may read what write(i) writes, but
  /// nothing that another call writes. Two calls write one element only if they write the same. On
  /// a device several reads are under way at once, which each() cannot do where its body writes.
  template <class Read, class Write>
  WISP_HD void update(int64_t n, const Read& read, const Write& write) const {
#ifdef __CUDA_ARCH__
    cuda::team_batches(n, read, write);
#else
    if (order_ != 0) {  // all reads before the first write
      std::vector<decltype(read(int64_t{}))> values;
      for (int64_t i = 0; i < n; ++i) values.push_back(read(i));
      for (const int64_t i : parallel::shuffled(order_, n))
        write(i, values[static_cast<size_t>(i)]);
      return;
    }
    each(n, [&](int64_t i) { write(i, read(i)); });
#endif
  }

  /// update() that writes to[i] = of(i).
  template <class To, class Of>
  WISP_HD void fill(int64_t n, To* to, const Of& of) const {
    update(n, of, [to](int64_t i, const To& value) { to[i] = value; });
  }

  /// Calls body() on one thread.
  template <class Body>
  WISP_HD void once(const Body& body) const {
    each(1, [&](int64_t) { body(); });
  }

  /// Adds 1 to bins[bin(i)] for each i in [0, n) with bin(i) >= 0.
  template <class Bin>
  WISP_HD void histogram(int64_t n, uint32_t* bins, const Bin& bin) const {
#ifdef __CUDA_ARCH__
    cuda::team_histogram(n, bins, bin);
#else
    for (int64_t i = 0; i < n; ++i) {
      const int at = bin(i);
      if (at >= 0) ++bins[at];
    }
#endif
  }

  /// Calls emit(i, sum of value(j) over j < i) for each i in [0, n), and returns the sum of all.
  /// emit(i) may write the memory that value(i) read.
  template <class Value, class Emit>
  WISP_HD int64_t scan(int64_t n, const Value& value, const Emit& emit) const {
#ifdef __CUDA_ARCH__
    return cuda::team_scan(sums_, n, value, emit);
#else
    int64_t total = 0;
    if (order_ != 0) {
      std::vector<int64_t> before(static_cast<size_t>(n));
      for (int64_t& sum : before) {
        sum = total;
        total += value(&sum - before.data());
      }
      for (const int64_t i : parallel::shuffled(order_, n)) emit(i, before[static_cast<size_t>(i)]);
      return total;
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t here = value(i);
      emit(i, total);
      total += here;
    }
    return total;
#endif
  }

  /// Returns to all threads the result of parallel::reduce_lanes over [begin, end).
  template <class Kernel>
  WISP_HD typename Kernel::Value reduce_lanes(int64_t begin, int64_t end,
                                              const Kernel& kernel) const {
#ifdef __CUDA_ARCH__
    return cuda::block_reduce_lanes<cuda::kTeamThreads>(begin, end, kernel);
#else
    return parallel::cpu_reduce_block(begin, end, kernel);
#endif
  }

  /// The result of parallel_reduce over [0, n), with the same bits.
  template <class Kernel>
  WISP_HD typename Kernel::Value reduce(int64_t n, const Kernel& kernel) const {
#ifdef __CUDA_ARCH__
    return cuda::team_reduce(n, kernel);
#else
    const int64_t block = parallel::reduce_block(n);
    typename Kernel::Value partial[parallel::kMaxPartials];
    int64_t blocks = 0;
    for (int64_t begin = 0; begin < n; begin += block)
      partial[blocks++] = parallel::reduce_lanes(begin, std::min(n, begin + block), kernel);
    return parallel::reduce_lanes(0, blocks, parallel::Partials<Kernel>{partial, kernel});
#endif
  }

  /// Calls emit(at, i) for each i in [0, n) with keep(i); `at` counts them in ascending order of i.
  /// Returns their number. keep(i) is called once for each i and reads nothing that emit writes.
  template <class Keep, class Emit>
  WISP_HD int64_t select(int64_t n, const Keep& keep, const Emit& emit) const {
#ifdef __CUDA_ARCH__
    return cuda::team_select(sums_, n, keep, emit);
#else
    int64_t count = 0;
    if (order_ != 0) {
      std::vector<int64_t> at(static_cast<size_t>(n), -1);
      for (int64_t i = 0; i < n; ++i)
        if (keep(i)) at[static_cast<size_t>(i)] = count++;
      for (const int64_t i : parallel::shuffled(order_, n))
        if (at[static_cast<size_t>(i)] >= 0) emit(at[static_cast<size_t>(i)], i);
      return count;
    }
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
      for (uint64_t mask = parallel::cpu_mask64(i, keep); mask; mask &= mask - 1)
        emit(count++, i + __builtin_ctzll(mask));
    }
    for (; i < n; ++i)
      if (keep(i)) emit(count++, i);
    return count;
#endif
  }

 private:
  [[maybe_unused]] int64_t* sums_;
  [[maybe_unused]] uint32_t order_;
};

/// Adds `more` to *word, which teams share.
WISP_HD inline void add_in_common(uint32_t* word, uint32_t more) {
#ifdef __CUDA_ARCH__
  atomicAdd(word, more);
#else
  __atomic_fetch_add(word, more, __ATOMIC_RELAXED);
#endif
}

namespace parallel {

template <class Kernel>
WISP_CLONES void cpu_teams(int64_t begin, int64_t end, const Kernel kernel, uint32_t order) {
  for (int64_t item = begin; item < end; ++item) {
    typename Kernel::Shared shared;
    kernel(Team(nullptr, order), item, shared);
  }
}

}  // namespace parallel

/// Calls kernel(team, item, shared) for each item in [0, items), in any order. The kernel has a
/// type Shared; each team has one, uninitialised. An item is worth about `elements` elements, which
/// decides whether it is worth a thread of the CPU. kResidentBlocks is as for parallel_for.
template <class Kernel>
void parallel_teams(const Stream& stream, int64_t items, Kernel kernel, int64_t elements) {
#ifdef __CUDACC__
  if (stream.device().is_cuda()) return cuda::launch_teams<Team>(stream, items, kernel);
#endif
  stream.launch([items, kernel, elements, order = int64_t{parallel::team_order()}] {
    const bool worth = items > 1 && items * elements >= 2 * parallel::kGrain;
    const int64_t threads = worth ? omp_get_max_threads() : 1;
    parallel::cpu_ranges(
        items, std::max<int64_t>(1, (items + threads - 1) / threads),
        [&](int64_t b, int64_t e) {
          if (order == 0) return parallel::cpu_teams(b, e, kernel, 0);
          const auto seed = static_cast<uint32_t>(order);
          for (const int64_t i : parallel::shuffled(seed, e - b))
            parallel::cpu_teams(b + i, b + i + 1, kernel, seed);
        },
        worth ? 0 : items + 1);
  });
}

}  // namespace wisp
