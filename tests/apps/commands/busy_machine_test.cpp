// A test of the program beside other programs that take its cores.
#include <gtest/gtest.h>

#include <chrono>

#include "core/base/shared_cores.h"
#include "tests/support/command.h"
#include "tests/support/program.h"

namespace wisp {
namespace {

/// Processes that keep a core busy each, for as long as the object lives.
class BusyProcesses {
 public:
  explicit BusyProcesses(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child == 0) {
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

/// The advice comes while the run goes on, once it has looked for some seconds.
TEST_F(Program, BesideBusyProgramsAdvisesFewerThreads) {
  const BusyProcesses others(SharedCores().cores());
  start_command({"/usr/bin/env", "-u", "OMP_WAIT_POLICY", WISP_PROGRAM, "train", config(),
                 "threads=2", "workers=1", "--out", dir_ / "run"});
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
