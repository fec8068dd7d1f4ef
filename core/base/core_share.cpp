#include "core/base/core_share.h"

#include <omp.h>

#include <algorithm>
#include <thread>

#include "core/base/cpu_quota.h"
#include "core/base/error.h"

namespace wisp {
namespace {

/// The cores that teams of the calling thread may use: of its affinity, and of OMP_PLACES.
int cores_of_teams() {
  int in_places = 0;
  for (int place = 0; place < omp_get_num_places(); ++place)
    in_places += omp_get_place_num_procs(place);
  const int cores = omp_get_num_procs();
  return std::max(1, in_places > 0 ? std::min(cores, in_places) : cores);
}

}  // namespace

CoreLimits CoreLimits::here() {
  const int cores = cores_of_teams();
  return {.machine = std::max(cores, static_cast<int>(std::thread::hardware_concurrency())),
          .together = cores,
          .own = cores,
          .quota = cpu_quota(),
          .omp_threads = omp_get_max_threads(),
          .omp_limit = omp_get_thread_limit()};
}

CoreShare core_share(const CoreLimits& limits, int workers) {
  CoreShare share{std::max(1, limits.machine / workers), ""};
  const auto lower = [&](int threads, const std::string& limit) {
    if (std::max(1, threads) >= share.threads) return;
    share = {std::max(1, threads), limit};
  };
  const auto bound = [&](int cores) {
    return concat("bound to ", cores, " of ", limits.machine, " cores");
  };
  lower(limits.together / workers, bound(limits.together));
  lower(limits.own, bound(limits.own));
  if (limits.quota)
    lower(static_cast<int>(std::min<double>(*limits.quota, limits.machine)) / workers,
          concat("the control group's quota is ", *limits.quota, " cores"));
  lower(limits.omp_threads, concat("OMP_NUM_THREADS is ", limits.omp_threads));
  lower(limits.omp_limit, concat("OMP_THREAD_LIMIT is ", limits.omp_limit));
  return share;
}

}  // namespace wisp
