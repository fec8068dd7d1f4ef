// Tests of the program when signals stop it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "core/io/checkpoint_directory.h"
#include "tests/support/command.h"
#include "tests/support/program.h"

namespace wisp {
namespace {

TEST_F(Program, ASignalStopsItAfterAWholeStepAndItGoesOn) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    std::filesystem::remove_all(dir_ / "run");
    start({"train", config(), "--out", dir_ / "run"});
    await_steps();
    signal(number);
    EXPECT_EQ(wait(), 128 + number) << said();
    EXPECT_NE(said().find("its checkpoint is saved, go on with --resume"), std::string::npos)
        << said();
    const int64_t step = checkpoint_steps(dir_ / "run/checkpoints").back();
    EXPECT_GT(step, 0);
    EXPECT_EQ(run({"train", config(), concat("train.max_steps=", step + 1), "--out", dir_ / "run",
                   "--resume"}),
              0)
        << said();
    EXPECT_EQ(checkpoint_steps(dir_ / "run/checkpoints").back(), step + 1);
  }
}

TEST_F(Program, ASecondSignalEndsItAtOnce) {
  // the first signal waits for the end of a step, which takes seconds here
  start({"train", config(), "link.latency_us=1e6", "timeout_s=300", "--out", dir_ / "run"});
  while (!catches(child_, SIGINT)) usleep(1000);
  signal(SIGINT);
  while (catches(child_, SIGINT)) usleep(1000);  // two pending signals would be one
  signal(SIGINT);
  int status = 0;
  waitpid(child_, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << said();
}

/// A terminal for the child, closed by the destructor.
class PseudoTerminal {
 public:
  PseudoTerminal() : descriptor_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    WISP_CHECK(descriptor_ >= 0 && grantpt(descriptor_) == 0 && unlockpt(descriptor_) == 0,
               "no pseudo terminal");
  }
  ~PseudoTerminal() { close(descriptor_); }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  std::string name() const { return ptsname(descriptor_); }

 private:
  int descriptor_;
};

TEST_F(Program, AClosedTerminalStopsItAfterAWholeStep) {
  {
    const PseudoTerminal terminal;
    start_command({"/bin/sh", "-c",
                   concat("exec setsid --ctty \"$0\" \"$@\" <", terminal.name(), " >",
                          terminal.name(), " 2>&1"),
                   WISP_PROGRAM, "train", config(), "checkpoint.every_epochs=0", "--out",
                   dir_ / "run"});
    await_steps();
  }
  EXPECT_EQ(wait(), 128 + SIGHUP) << said();
  EXPECT_EQ(checkpoint_steps(dir_ / "run/checkpoints").size(), 1u)
      << "of the step that was its last";
}

TEST_F(Program, NohupLetsItGoOn) {
  start_command({"/bin/sh", "-c", "trap '' HUP; exec \"$0\" \"$@\"", WISP_PROGRAM, "train",
                 config(), "--out", dir_ / "run"});
  await_steps();
  signal(SIGHUP);
  signal(SIGTERM);
  EXPECT_EQ(wait(), 128 + SIGTERM) << said();
}

TEST_F(Program, BeforeTheFirstStepASignalEndsItAtOnce) {
  const std::string pipe = dir_ / "config";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    start_command({"/bin/sh", "-c", "exec \"$0\" train /dev/stdin --out \"$1\" <\"$2\"",
                   WISP_PROGRAM, dir_ / "run", pipe});
    int descriptor = -1;  // can be opened once the child reads
    while ((descriptor = open(pipe.c_str(), O_WRONLY | O_NONBLOCK)) < 0) usleep(1000);
    signal(number);
    close(descriptor);  // without the signal, the child would fail
    EXPECT_EQ(wait(), 128 + number) << said();
  }
}

}  // namespace
}  // namespace wisp
