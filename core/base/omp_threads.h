// The OpenMP threads of the calling thread. OpenMP may grant a smaller team than it was told
// (OMP_THREAD_LIMIT, OMP_DYNAMIC, OMP_MAX_ACTIVE_LEVELS, a region around the call), but libraries
// wait for a whole one. So a number is asked for before it is trusted. Any thread.
#pragma once

#include <string>

namespace wisp {

/// The most threads of one kind that a user may ask for.
constexpr int kMostThreads = 1024;

/// Sets the size of the calling thread's later teams. OpenMP may no longer vary it by load or rule
/// out teams.
void set_omp_threads(int count);

/// A scope with this setting, after which the old settings return.
class OmpThreads {
 public:
  explicit OmpThreads(int count);
  ~OmpThreads();
  OmpThreads(const OmpThreads&) = delete;
  OmpThreads& operator=(const OmpThreads&) = delete;

 private:
  const int count_, dynamic_, levels_;  // before
};

/// The size that teams of the calling thread have after set_omp_threads(asked): `asked`, or what
/// OMP_THREAD_LIMIT leaves of it. 1 within a parallel region. Opens a region to see it.
int granted_omp_threads(int asked);

/// Throws Error, which begins with `key`, unless the calling thread's teams can have `asked`
/// threads: above kMostThreads, if OpenMP grants fewer, or if the system does not start them.
/// Throws Error, too, if their stacks are too small.
void require_omp_threads(int asked, const std::string& key);

/// The answer of granted_omp_threads() for an object that one thread uses at a time. It asks anew
/// only where the settings have changed.
class KnownOmpThreads {
 public:
  /// What a team of the size that the calling thread has set would have.
  int granted();

 private:
  int asked_ = 0, level_ = -1;  // at the last answer
  int granted_ = 1;
};

}  // namespace wisp
