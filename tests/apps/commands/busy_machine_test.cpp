// A test of the program beside other programs that take its cores.
#include <gtest/gtest.h>

#include <chrono>

#include "core/base/error.h"
#include "core/base/shared_cores.h"
#include "tests/support/program.h"

namespace wisp {
namespace {

/// Processes that keep a core busy each, for as long as the object lives, but not beyond minutes.
class BusyProcesses {
 public:
  explicit BusyProcesses(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = fork();
      WISP_CHECK(child >= 0, "cannot start process ", i, " of ", count);
      if (child == 0) {
        alarm(180);
        volatile int turns = 0;
        while (true) turns = turns ^ 1;
      }
      children_.push_back(child);
    }
  }
  ~BusyProcesses() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  BusyProcesses(const BusyProcesses&) = delete;
  BusyProcesses& operator=(const BusyProcesses&) = delete;

 private:
  std::vector<pid_t> children_;
};

/// The program measures the load of others for five seconds, then prints its advice.
TEST_F(Program, BesideBusyProgramsAdvisesFewerThreads) {
  SharedCores cores;
  const BusyProcesses others(cores.cores());
  usleep(500'000);
  if (cores.taken_by_others() < 0.7 * cores.cores())
    GTEST_SKIP() << "the system does not tell of others, or a quota holds them back";
  start_command({"/usr/bin/env", "-u", "OMP_WAIT_POLICY", WISP_PROGRAM, "train", config(),
                 "threads=2", "workers=1", "--out", dir_ / "run"});
  ASSERT_GT(child_, 0);
  const auto late = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (said().find("other programs take ") == std::string::npos &&
         std::chrono::steady_clock::now() < late)
    usleep(100'000);
  signal(SIGKILL);
  wait();
  EXPECT_NE(said().find("or threads=1"), std::string::npos) << said().substr(0, 2000);
}

}  // namespace
}  // namespace wisp
