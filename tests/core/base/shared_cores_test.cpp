#include "core/base/shared_cores.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace wisp {
namespace {

// user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice, in ticks
constexpr const char* kStat =
    "cpu  990 90 90 900 90 9 9 9 9 9\n"
    "cpu0 100 20 30 1000 50 1 2 3 7 8\n"
    "cpu1 400 0 0 1000 0 0 0 0 0 0\n"
    "cpu10 9900 0 0 0 0 0 0 0 0 0\n"
    "intr 1 2 3\n";

TEST(SharedCores, CountsWhatIsNotIdle) {
  const auto second = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(busy_seconds(kStat, {0}).value(), 156 / second);
  EXPECT_DOUBLE_EQ(busy_seconds(kStat, {0, 1}).value(), 556 / second);
  EXPECT_DOUBLE_EQ(busy_seconds(kStat, {10}).value(), 9900 / second);
}

TEST(SharedCores, SayNothingOfCoresThatAreNotThere) {
  EXPECT_FALSE(busy_seconds(kStat, {0, 2}));
  EXPECT_FALSE(busy_seconds(kStat, {}));
  EXPECT_FALSE(busy_seconds("", {0}));
  EXPECT_FALSE(busy_seconds("cpu0 1 2 3\n", {0}));
}

TEST(SharedCores, AreAdvisedOnlyWhereThreadsHaveToWait) {
  EXPECT_EQ(shared_cores_advice(0.94, 2, 1, 2),
            "other programs take 0.9 of 2 cores, so a worker's threads wait for each other: set "
            "OMP_WAIT_POLICY=passive in the environment, or threads=1");
  EXPECT_EQ(shared_cores_advice(0.2, 2, 1, 2), "") << "the system's own work";
  EXPECT_EQ(shared_cores_advice(2.0, 2, 1, 1), "") << "one thread waits for nobody";
  EXPECT_EQ(shared_cores_advice(30.0, 64, 4, 8), "") << "there is room for both";
  EXPECT_NE(shared_cores_advice(40.0, 64, 4, 8).find("threads=6"), std::string::npos);
  EXPECT_NE(shared_cores_advice(64.0, 64, 4, 8).find("threads=1"), std::string::npos);
}

TEST(SharedCores, SeesAnotherProcessAtWork) {
  SharedCores cores;
  ASSERT_GT(cores.cores(), 0);
  const pid_t child = fork();
  if (child == 0) {
    volatile int turns = 0;
    while (true) turns = turns ^ 1;
  }
  ASSERT_GT(child, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const double taken = cores.taken_by_others();
  EXPECT_GT(taken, 0.1);
  EXPECT_LE(taken, cores.cores());
}

}  // namespace
}  // namespace wisp
