// Tests of the program when signals stop it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/io/checkpoint_directory.h"
#include "tests/support/command.h"
#include "tests/support/program.h"
#include "tests/support/pseudo_terminal.h"

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

TEST_F(Program, AClosedTerminalStopsItAfterAWholeStep) {
  {
    const PseudoTerminal terminal;
    if (!terminal.opened()) GTEST_SKIP() << kNoTerminal;
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

/// Shell commands that make descriptor 3 a pipe whose reader has gone.
constexpr const char* kReaderGone = "mkfifo $pipe; true <$pipe & exec 3>$pipe; wait; ";

TEST_F(Program, ALogThatCannotBeWrittenEndsNoTraining) {
  const auto rows = [&](const std::string& run) {
    const std::string text = read_text(run + "/metrics.jsonl");
    return std::ranges::count(text, '\n');
  };
  ASSERT_EQ(run({"train", config(), "train.max_steps=8", "--out", dir_ / "whole"}), 0) << said();
  const std::string train = concat(WISP_PROGRAM, " train ", config(), " train.max_steps=8 --out ");
  int number = 0;
  for (const auto& [how, notice] : std::vector<std::pair<std::string, std::string>>{
           {concat(kReaderGone, "$train >&3 2>$errors; echo $? >$status"), "Broken pipe"},
           {concat(kReaderGone, "$train >&3 2>&3; echo $? >$status"), ""},
           {"{ $train 2>$errors; echo $? >$status; } | head -2 >/dev/null", ""},
           {"$train >/dev/full 2>$errors; echo $? >$status", "No space left on device"},
           {"$train >/dev/full 2>/dev/full; echo $? >$status", ""},
           {"$train >&- 2>$errors; echo $? >$status", ""},
           {"$train <&- >&- 2>&-; echo $? >$status", ""},
           {"$train 1</dev/null 2>$errors; echo $? >$status", "Bad file descriptor"}}) {
    const std::string out = dir_ / concat("run", ++number);
    run_command(concat("train='", train, out, "'; errors=", out, ".errors; status=", out,
                       ".status; pipe=", out, ".pipe; ", how));
    EXPECT_EQ(read_text(out + ".status"), "0\n") << how;
    EXPECT_EQ(rows(out), rows(dir_ / "whole")) << how;
    EXPECT_EQ(checkpoint_steps(out + "/checkpoints").back(), 8) << how;
    EXPECT_NE(read_text(out + ".errors").find(notice), std::string::npos)
        << how << read_text(out + ".errors");
  }
}

TEST_F(Program, EndsQuietlyWhereItsReaderHasReadEnough) {
  const std::string pipe = "pipe=" + (dir_ / "pipe") + "; " + kReaderGone;
  for (const char* command : {"config --reference", "methods", "--help", "--version"}) {
    const CommandResult result = run_command(concat(pipe, WISP_PROGRAM, " ", command, " >&3"));
    EXPECT_EQ(result.status, 128 + SIGPIPE) << command;
    EXPECT_EQ(result.output, "") << command;
    std::filesystem::remove(dir_ / "pipe");
  }
}

TEST_F(Program, WritesWhatItWasAskedForThoughNobodyReadsItsOutput) {
  ASSERT_EQ(run({"train", config(), "train.max_steps=2", "--quiet", "--out", dir_ / "run"}), 0);
  const std::string text = dir_.write("text", "a b c\na b d\n");
  for (const auto& [command, file] : std::vector<std::pair<std::string, std::string>>{
           {concat("report ", dir_ / "run", " --html ", dir_ / "page"), "page"},
           {concat("eval ", dir_ / "run", " --predictions ", dir_ / "p"), "p"},
           {concat("export ", dir_ / "run", " --to ", dir_ / "w.safetensors"), "w.safetensors"},
           {concat("lm ", text, " --out ", dir_ / "lm"), "lm"},
           {concat("sweep ", config(), " train.max_steps=1,2 --out ", dir_ / "sweep"),
            "sweep/max_steps-2/summary.json"}}) {
    run_command(
        concat("pipe=", dir_ / "pipe", "; ", kReaderGone, WISP_PROGRAM, " ", command, " >&3 2>&3"));
    std::filesystem::remove(dir_ / "pipe");
    EXPECT_FALSE(read_text(dir_ / file).empty()) << command;
  }
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
