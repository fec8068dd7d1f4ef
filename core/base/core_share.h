// The share of a machine's cores that a worker takes where the user names no number of threads. Any
// thread.
#pragma once

#include <optional>
#include <string>

namespace wisp {

/// What a process may use. Whatever a system does not say stays at its default.
struct CoreLimits {
  int machine = 1;              // cores of the machine
  int together = 1;             // cores that the machine's workers are bound to together
  int own = 1;                  // cores that this process is bound to
  std::optional<double> quota;  // cores' time of the container, shared by its workers
  int omp_threads = 1;          // size of a team by default: OMP_NUM_THREADS
  int omp_limit = 1;            // OMP_THREAD_LIMIT

  /// The limits of the calling thread, with `together` equal to `own`.
  static CoreLimits here();
};

struct CoreShare {
  int threads = 1;
  std::string limit;  // what makes it less than an equal share of the machine; empty if nothing
};

/// The threads of each of `workers` workers, one at least. A quota is rounded down: teams wait for
/// their slowest thread, and the other threads of a worker need time too.
CoreShare core_share(const CoreLimits& limits, int workers);

}  // namespace wisp
