#include "core/base/core_share.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <thread>

namespace wisp {
namespace {

/// A machine of 16 cores on which nothing is limited.
CoreLimits whole_machine() {
  return {.machine = 16, .together = 16, .own = 16, .omp_threads = 16, .omp_limit = 1 << 30};
}

TEST(CoreShare, IsAnEqualPart) {
  EXPECT_EQ(core_share(whole_machine(), 1).threads, 16);
  EXPECT_EQ(core_share(whole_machine(), 3).threads, 5);
  EXPECT_EQ(core_share(whole_machine(), 100).threads, 1);
  for (const int workers : {1, 3, 100}) EXPECT_EQ(core_share(whole_machine(), workers).limit, "");
}

TEST(CoreShare, HeedsTheCoresThatWorkersAreBoundTo) {
  CoreLimits limits = whole_machine();
  limits.together = limits.own = 4;
  EXPECT_EQ(core_share(limits, 1).threads, 4);
  EXPECT_EQ(core_share(limits, 4).threads, 1) << "unbound processes in a container of 4 cores";
  EXPECT_EQ(core_share(limits, 4).limit, "bound to 4 of 16 cores");
  limits.together = 16;
  EXPECT_EQ(core_share(limits, 4).threads, 4) << "processes bound to 4 cores each";
  limits.own = 1;
  EXPECT_EQ(core_share(limits, 4).limit, "bound to 1 of 16 cores");
}

TEST(CoreShare, RoundsAQuotaDown) {
  CoreLimits limits = whole_machine();
  limits.quota = 7.9;
  EXPECT_EQ(core_share(limits, 1).threads, 7);
  EXPECT_EQ(core_share(limits, 2).threads, 3);
  EXPECT_EQ(core_share(limits, 2).limit, "the control group's quota is 7.9 cores");
  limits.quota = 0.25;
  EXPECT_EQ(core_share(limits, 1).threads, 1);
  limits.quota = 1e30;
  EXPECT_EQ(core_share(limits, 1).threads, 16);
}

TEST(CoreShare, HeedsOpenMpsNumbersForEachWorker) {
  CoreLimits limits = whole_machine();
  limits.omp_threads = 4;
  EXPECT_EQ(core_share(limits, 2).threads, 4);
  EXPECT_EQ(core_share(limits, 2).limit, "OMP_NUM_THREADS is 4");
  EXPECT_EQ(core_share(limits, 8).threads, 2);
  EXPECT_EQ(core_share(limits, 8).limit, "");
  limits.omp_limit = 3;
  EXPECT_EQ(core_share(limits, 2).threads, 3);
  EXPECT_EQ(core_share(limits, 2).limit, "OMP_THREAD_LIMIT is 3");
}

TEST(CoreLimits, AreThoseOfTheCallingThread) {
  std::thread([] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    omp_set_num_threads(7);
    EXPECT_EQ(CoreLimits::here().omp_threads, 7);
    EXPECT_EQ(CoreLimits::here().own, CPU_COUNT(&all));
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(CoreLimits::here().own, 1);
    EXPECT_EQ(CoreLimits::here().together, 1);
    EXPECT_GE(CoreLimits::here().machine, 1);
  }).join();
}

}  // namespace
}  // namespace wisp
