#include "core/base/omp_threads.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

/// Runs f() in a thread whose OpenMP settings are as at the program's start.
void anew(const std::function<void()>& f) { std::thread(f).join(); }

int team() {
  int size = 0;
#pragma omp parallel
  {
#pragma omp single
    size = omp_get_num_threads();
  }
  return size;
}

/// 4, unless the environment of this program limits teams.
int four() { return std::min(4, omp_get_thread_limit()); }

TEST(OmpThreads, AreTheSizeOfLaterTeams) {
  anew([] {
    omp_set_num_threads(1);
    {
      const OmpThreads threads(four());
      EXPECT_EQ(team(), four());
    }
    EXPECT_EQ(team(), 1);
    set_omp_threads(four());
    EXPECT_EQ(team(), four());
  });
}

TEST(OmpThreads, AreNotVariedByLoadOrRuledOut) {
  anew([] {
    omp_set_dynamic(1);
    omp_set_max_active_levels(0);
    EXPECT_EQ(team(), 1);
    {
      const OmpThreads threads(four());
      EXPECT_FALSE(omp_get_dynamic());
      EXPECT_EQ(team(), four());
    }
    EXPECT_TRUE(omp_get_dynamic()) << "the caller's settings return";
    EXPECT_EQ(omp_get_max_active_levels(), 0);
    EXPECT_EQ(granted_omp_threads(four()), four());
    EXPECT_EQ(omp_get_max_active_levels(), 0);
    set_omp_threads(four());
    EXPECT_EQ(team(), four());
  });
}

TEST(OmpThreads, AreCountedBeforeTheyAreTrusted) {
  anew([] {
    const int limit = omp_get_thread_limit();
    EXPECT_EQ(granted_omp_threads(1), 1);
    EXPECT_EQ(granted_omp_threads(four()), four());
    if (limit > 4) return;  // ctest also runs this test with OMP_THREAD_LIMIT=2
    EXPECT_EQ(granted_omp_threads(limit + 1), limit);
    const std::string key = "threads";
    EXPECT_EQ(error_of([&] { require_omp_threads(limit + 1, key); }),
              "threads is " + std::to_string(limit + 1) + ", but OpenMP grants " +
                  std::to_string(limit) + " (OMP_THREAD_LIMIT is " + std::to_string(limit) +
                  "); expected at most " + std::to_string(limit));
    omp_set_num_threads(limit + 1);
    EXPECT_EQ(KnownOmpThreads().granted(), limit);
  });
}

TEST(OmpThreads, AreOneWithinARegion) {
  anew([] {
    omp_set_max_active_levels(2);
    std::atomic<int> wrong = 0;
    KnownOmpThreads known;
    omp_set_num_threads(four());
    EXPECT_EQ(known.granted(), four());
#pragma omp parallel num_threads(four())
    {
      if (omp_in_parallel() && granted_omp_threads(4) != 1) ++wrong;
#pragma omp master
      {
        omp_set_num_threads(four());
        if (omp_in_parallel() && known.granted() != 1) ++wrong;
      }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(known.granted(), four());
    if (four() == 1) return;  // no region is parallel
    std::string complaint;
#pragma omp parallel num_threads(2)
    {
#pragma omp master
      complaint = error_of([] { require_omp_threads(2, "threads"); });
    }
    EXPECT_EQ(complaint,
              "threads is 2, but OpenMP grants 1 (within a parallel region); expected at most 1");
  });
}

TEST(OmpThreads, ANumberBeyondAllMeasureIsRefused) {
  for (const int asked : {-1, 0, kMostThreads + 1, 1'000'000})
    EXPECT_EQ(error_of([&] { require_omp_threads(asked, "comm_threads"); }),
              "comm_threads is " + std::to_string(asked) + ", expected 1 to 1024");
}

}  // namespace
}  // namespace wisp
