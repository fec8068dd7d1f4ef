#include "distributed/launch.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "core/base/omp_threads.h"

namespace wisp {
namespace {

std::string failure_of(int workers, const LaunchOptions& options,
                       const std::function<void(Worker&)>& work) {
  try {
    run_workers(workers, options, work);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RunWorkers, GivesEachWorkerItsRankThreadsAndCommunicator) {
  std::array<std::atomic<int>, 4> runs{};
  const int threads = std::min(3, omp_get_thread_limit());  // 3, unless the environment limits it
  run_workers(4, {.threads = threads}, [&](Worker& worker) {
    ++runs[static_cast<size_t>(worker.rank)];
    EXPECT_EQ(worker.threads, threads);
    EXPECT_EQ(omp_get_max_threads(), threads);
    EXPECT_EQ(worker.communicator.rank(), worker.rank);
    EXPECT_EQ(worker.communicator.size(), 4);
    worker.communicator.barrier()->wait();
  });
  for (const auto& count : runs) EXPECT_EQ(count, 1);
}

TEST(RunWorkers, SharesTheCoresByDefault) {
  run_workers(64, {}, [](Worker& worker) { EXPECT_LE(worker.threads, 8); });
  for (const int workers : {1, 2}) {
    const int share = core_share(workers).threads;
    run_workers(workers, {}, [&](Worker& worker) { EXPECT_EQ(worker.threads, share); });
  }
}

TEST(RunWorkers, TakeAtMostTheThreadsOfTheCallerByDefault) {
  const OmpThreads one(1);
  EXPECT_EQ(core_share(1).threads, 1);
  run_workers(1, {}, [](Worker& worker) {
    EXPECT_EQ(worker.threads, 1);
    EXPECT_EQ(omp_get_max_threads(), 1);
  });
}

TEST(RunWorkers, HaveTeamsWhereverTheyAreStarted) {
  if (omp_get_thread_limit() < 2) GTEST_SKIP() << "OMP_THREAD_LIMIT is 1";
  std::atomic<int> wrong = 0;
  const auto compare = [&](Worker&) {
    int size = 0;
#pragma omp parallel
    {
#pragma omp single
      size = omp_get_num_threads();
    }
    if (size != 2) ++wrong;
  };
#pragma omp parallel num_threads(2)
  run_workers(2, {.threads = 2}, compare);
  EXPECT_EQ(wrong, 0);
}

TEST(RunWorkers, RefusesNumbersThatNobodyMeans) {
  EXPECT_EQ(failure_of(1, {.threads = 1'000'000}, [](Worker&) {}),
            "threads is 1000000, expected 1 to 1024");
  EXPECT_EQ(failure_of(1'000'000, {}, [](Worker&) {}),
            "workers is 1000000, expected at most 1024 in one process");
}

TEST(RunWorkers, NamesTheLimitOfOpenMp) {
  const int limit = omp_get_thread_limit();
  if (limit >= kMostThreads) GTEST_SKIP() << "OMP_THREAD_LIMIT is not set";
  EXPECT_EQ(failure_of(2, {.threads = limit + 1}, [](Worker&) {}).substr(8),
            concat("threads is ", limit + 1, ", but OpenMP grants ", limit,
                   " (OMP_THREAD_LIMIT is ", limit, "); expected at most ", limit));
}

TEST(RunWorkers, NamesTheFirstCauseAndItsRank) {
  const std::string failure = failure_of(4, {}, [](Worker& worker) {
    if (worker.rank == 2) throw Error("disk full");
    worker.communicator.barrier()->wait();
  });
  EXPECT_EQ(failure, "rank 2: disk full");
}

TEST(RunWorkers, AWorldOfOneSpeaksWithoutRanks) {
  EXPECT_EQ(failure_of(1, {}, [](Worker&) { throw Error("disk full"); }), "disk full");
}

TEST(RunWorkers, AnEmptyCauseIsAFailureToo) {
  EXPECT_EQ(failure_of(1, {}, [](Worker&) { throw Error(""); }), "no cause given");
}

TEST(RunWorkers, ReportsWhatIsNoStdException) {
  EXPECT_EQ(failure_of(2, {},
                       [](Worker& worker) {
                         if (worker.rank == 1) throw 7;
                       }),
            "rank 1: an exception that is no std::exception");
}

TEST(RunWorkers, NamesTheCauseOfAnAbortWithoutException) {
  const std::string failure = failure_of(2, {}, [](Worker& worker) {
    if (worker.rank == 1) worker.communicator.abort("enough");
  });
  EXPECT_EQ(failure, "rank 1: enough");
}

TEST(RunWorkers, RefusesAnEmptyWorld) {
  EXPECT_THROW(run_workers(0, {}, [](Worker&) {}), Error);
}

TEST(Turns, LetOneWorkerComputeAtATime) {
  std::atomic<int> computing{0};
  std::atomic<int> steps{0};
  run_workers(4, {.turns = true}, [&](Worker& worker) {
    for (int step = 0; step < 50; ++step) {
      EXPECT_EQ(++computing, 1);
      std::this_thread::yield();
      ++steps;
      --computing;
      PendingPtr barrier = worker.communicator.barrier();
      worker.turns.release();
      barrier->wait();
      worker.turns.acquire();
    }
  });
  EXPECT_EQ(steps, 200);
}

TEST(Turns, LetAllComputeAtOnceIfOff) {
  run_workers(4, {}, [&](Worker& worker) {
    worker.communicator.barrier()->wait();  // would hang if a worker waited for its turn
  });
}

TEST(Turns, AFailureEndsThoseWhoWaitForATurn) {
  const std::string failure = failure_of(4, {.turns = true}, [](Worker& worker) {
    PendingPtr barrier = worker.communicator.barrier();
    worker.turns.release();
    barrier->wait();
    worker.turns.acquire();
    if (worker.rank == 1) throw Error("overflow");
    worker.turns.release();
    worker.communicator.barrier()->wait();
    worker.turns.acquire();
  });
  EXPECT_EQ(failure, "rank 1: overflow");
}

TEST(Turns, AreGivenInTheOrderOfAsking) {
  Turns turns(1);
  turns.acquire();
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      turns.acquire();
      order.push_back(i);
      turns.release();
    });
    while (turns.waiting() <= i) std::this_thread::yield();
  }
  turns.release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Turns, AbortThrowsItsCauseForGood) {
  Turns turns(1);
  turns.abort("first");
  turns.abort("second");
  try {
    turns.acquire();
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

}  // namespace
}  // namespace wisp
