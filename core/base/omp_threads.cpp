#include "core/base/omp_threads.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <latch>
#include <limits>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace wisp {
namespace {

// Kernels and libraries keep some ten kilobytes of a call on the stack. The thread's own variables
// lie there too.
constexpr size_t kLeastStack = 256 << 10;

/// Throws Error unless the system starts this many threads that live at the same time. OpenMP would
/// end the program.
void check_start(int count, const std::string& key) {
  std::latch all_tried(1);
  std::vector<std::jthread> threads;
  struct Release {
    std::latch& latch;
    ~Release() { latch.count_down(); }
  } const release{all_tried};  // before the threads are joined, whatever was thrown
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back([&all_tried] { all_tried.wait(); });
  } catch (const std::system_error& error) {
    throw Error(concat(key, " is ", count + 1, ", but after ", threads.size() + 1,
                       " no more threads start: ", error.what(),
                       "; are threads or addresses limited (ulimit -u, ulimit -v)?"));
  }
}

/// The least stack of a team's threads, in bytes.
size_t least_stack() {
  size_t least = std::numeric_limits<size_t>::max();
#pragma omp parallel reduction(min : least)
  {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      pthread_attr_getstacksize(&attributes, &least);
      pthread_attr_destroy(&attributes);
    }
  }
  return least;
}

std::string limit_of_teams() {
  if (omp_in_parallel()) return "within a parallel region";
  return concat("OMP_THREAD_LIMIT is ", omp_get_thread_limit());
}

}  // namespace

void set_omp_threads(int count) {
  omp_set_num_threads(count);
  omp_set_dynamic(0);
  if (omp_get_max_active_levels() < 1) omp_set_max_active_levels(1);
}

OmpThreads::OmpThreads(int count)
    : count_(omp_get_max_threads()),
      dynamic_(omp_get_dynamic()),
      levels_(omp_get_max_active_levels()) {
  set_omp_threads(count);
}

OmpThreads::~OmpThreads() {
  omp_set_num_threads(count_);
  omp_set_dynamic(dynamic_);
  if (omp_get_max_active_levels() != levels_) omp_set_max_active_levels(levels_);
}

int granted_omp_threads(int asked) {
  // a team within a team depends on what the others are doing
  if (asked <= 1 || omp_in_parallel()) return 1;
  const OmpThreads threads(asked);
  int granted = 1;
#pragma omp parallel
  {
#pragma omp single
    granted = omp_get_num_threads();
  }
  return granted;
}

void require_omp_threads(int asked, const std::string& key) {
  WISP_CHECK(1 <= asked && asked <= kMostThreads, key, " is ", asked, ", expected 1 to ",
             kMostThreads);
  if (!omp_in_parallel()) check_start(std::min(asked, omp_get_thread_limit()) - 1, key);
  const int granted = granted_omp_threads(asked);
  WISP_CHECK(granted == asked, key, " is ", asked, ", but OpenMP grants ", granted, " (",
             limit_of_teams(), "); expected at most ", granted);
  if (asked == 1) return;
  const OmpThreads threads(asked);
  const size_t stack = least_stack();
  WISP_CHECK(stack >= kLeastStack, "OpenMP's threads have stacks of ", stack / 1024,
             " KiB, expected ", kLeastStack / 1024,
             " or more; are stacks limited (OMP_STACKSIZE, ulimit -s)?");
}

int KnownOmpThreads::granted() {
  const int asked = omp_get_max_threads(), level = omp_get_active_level();
  if (asked != asked_ || level != level_) {
    granted_ = granted_omp_threads(asked);
    asked_ = asked;
    level_ = level;
  }
  return granted_;
}

}  // namespace wisp
