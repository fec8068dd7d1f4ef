#include "apps/sweep/children.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

TEST(Children, TellHowEachEnded) {
  const TempDir dir;
  Children children;
  children.start(4, shell("echo out; echo err >&2; exit 3"), dir / "log");
  const Children::Ended ended = children.wait();
  EXPECT_EQ(ended.id, 4u);
  EXPECT_EQ(ended.status, 3);
  EXPECT_EQ(read_text(dir / "log"), "out\nerr\n");
  EXPECT_EQ(children.running(), 0u);
  EXPECT_EQ(children.signalled(), 0);
}

TEST(Children, MayHaveAVariableOfTheirOwn) {
  const TempDir dir;
  Children children;
  const auto run = [&](const std::string& variable) {
    children.start(0, shell("echo \"$WISP_A $WISP_AB\"; env | grep -c ^WISP_A="), dir / "log",
                   variable);
    children.wait();
  };
  run("WISP_A=1 = 2");
  setenv("WISP_A", "old", 1);
  setenv("WISP_AB", "other", 1);
  run("WISP_A=new");
  run("");
  unsetenv("WISP_A");
  unsetenv("WISP_AB");
  EXPECT_EQ(read_text(dir / "log"), "1 = 2 \n1\nnew other\n1\nold other\n1\n");
}

TEST(Children, OfLowPriorityLeaveOthersTheirTime) {
  const TempDir dir;
  Children children(19);
  // The priority is set after the start.
  children.start(
      0,
      shell("for i in 1 2 3 4 5 6 7 8 9; do [ $(nice) = 19 ] && exit 0; sleep 0.1; done; exit 1"),
      dir / "log");
  EXPECT_EQ(children.wait().status, 0);
}

TEST(Children, OneThatCrashesEndsNoOther) {
  const TempDir dir;
  Children children;
  children.start(0, shell("kill -SEGV $$"), dir / "a");
  children.start(1, shell("exit 0"), dir / "b");
  std::set<std::pair<size_t, int>> ends;
  while (children.running() > 0) {
    const Children::Ended ended = children.wait();
    ends.insert({ended.id, ended.status});
  }
  EXPECT_EQ(ends, (std::set<std::pair<size_t, int>>{{0, 128 + SIGSEGV}, {1, 0}}));
}

TEST(Children, AKillIsToldFromAnExitStatus) {
  const TempDir dir;
  for (const auto& [script, how] : std::vector<std::pair<std::string, std::string>>{
           {"exit 1", "status 1"},
           {"exit 137", "status 137"},
           {"kill -KILL $$", "killed by signal 9, Killed, as where memory is full"},
           {"kill -TERM $$", "killed by signal 15, Terminated"}}) {
    Children children;
    children.start(0, shell(script), dir / "log");
    EXPECT_EQ(children.wait().how(), how);
  }
}

/// A script that notes its number in `dir`, and what ended it.
std::string noting(const TempDir& dir) {
  return concat("trap 'echo saved >", dir / "saved", "; exit 143' TERM; echo $$ >", dir / "pid.tmp",
                "; mv ", dir / "pid.tmp", " ", dir / "pid", "; while :; do sleep 0.01; done");
}

void await(const std::string& file) {
  while (read_text(file).empty()) usleep(1000);
}

TEST(Children, SaveWhenThisProcessIsKilled) {
  for (const int niceness : {0, 1}) {
    const TempDir dir;
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // then this process gets the child
    const pid_t parent = fork();
    if (parent == 0) {
      Children children(niceness);
      children.start(0, shell(noting(dir)), dir / "log");
      await(dir / "pid");
      raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(parent, &status, 0), parent);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    const pid_t child = std::stoi(read_text(dir / "pid"));
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 143) << status;
    EXPECT_EQ(read_text(dir / "saved"), "saved\n");
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
}

TEST(Children, SaveWhereTheirOwnerFails) {
  const TempDir dir;
  const auto fail = [&] {
    Children children;
    children.start(0, shell(noting(dir)), dir / "log");
    await(dir / "pid");
    throw Error("the disk is full");
  };
  EXPECT_EQ(error_of(fail), "the disk is full");
  EXPECT_EQ(read_text(dir / "saved"), "saved\n");
}

TEST(Children, HaveDefaultSignalsAndNoFilesOfThisProcess) {
  const TempDir dir;
  const auto before = signal(SIGPIPE, SIG_IGN);  // as in the program
  Children children;
  children.start(0,
                 shell("grep SigIgn /proc/self/status; grep SigBlk /proc/self/status; "
                       "ls /proc/self/fd | wc -l; cat"),
                 dir / "log");
  EXPECT_EQ(children.wait().status, 0);
  signal(SIGPIPE, before);
  const std::string log = read_text(dir / "log");
  EXPECT_NE(log.find("SigBlk:\t0000000000000000"), std::string::npos) << log;
  const size_t at = log.find("SigIgn:\t");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_EQ(std::stoull(log.substr(at + 8), nullptr, 16) >> (SIGPIPE - 1) & 1, 0u) << log;
}

TEST(Children, OfALogOnlyTheirOwnLinesCount) {
  const TempDir dir;
  const std::string log = dir.write("log", "wisp: an old reason\n");
  EXPECT_EQ(last_line(log), "wisp: an old reason");
  EXPECT_EQ(last_line(log, 20), "");
  EXPECT_EQ(last_line(log, 2000), "");
  EXPECT_EQ(last_line(dir / "none"), "");
}

TEST(Children, GetTheSignalsOfThisProcess) {
  const TempDir dir;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    Children children;
    children.start(0, shell("exec sleep 100"), dir / "log");
    raise(number);
    EXPECT_EQ(children.wait().status, 128 + number);
    EXPECT_EQ(children.signalled(), number);
  }
}

TEST(Children, DoNotGetAHangupThatIsIgnored) {
  const TempDir dir;
  const auto before = signal(SIGHUP, SIG_IGN);  // like nohup
  {
    Children children;
    children.start(0, shell("exec sleep 100"), dir / "log");
    raise(SIGHUP);
    raise(SIGTERM);
    EXPECT_EQ(children.wait().status, 128 + SIGTERM);
    EXPECT_EQ(children.signalled(), SIGTERM);
  }
  signal(SIGHUP, before);
}

TEST(Children, AProgramThatIsNotThereIsAnError) {
  const TempDir dir;
  Children children;
  EXPECT_NE(error_of([&] {
              children.start(0, {dir / "none"}, dir / "log");
            }).find("No such file or directory"),
            std::string::npos);
}

TEST(Children, DoNotWaitForTheReaderOfTheirLog) {
  const TempDir dir;
  Children children;
  ASSERT_EQ(mkfifo((dir / "log").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { children.start(0, shell("exit 0"), dir / "log"); }),
            dir / "log: cannot be opened for writing: it is a pipe or a socket that nobody reads");
  EXPECT_EQ(children.running(), 0u);
  EXPECT_EQ(error_of([&] { last_line(dir / "log"); }), dir / "log: it is no file, but a pipe");
}

TEST(Children, TellTheirLastLine) {
  const TempDir dir;
  EXPECT_EQ(last_line(dir / "none"), "");
  EXPECT_EQ(last_line(dir.write("empty", "")), "");
  EXPECT_EQ(last_line(dir.write("a", "one\ntwo\n\n")), "two");
  EXPECT_EQ(last_line(dir.write("b", "one\ntwo")), "two");
  EXPECT_EQ(last_line(dir.write("c", std::string(1'000'000, 'x') + "\nlast\n")), "last");
  EXPECT_EQ(last_line(dir.write("d", std::string(1'000'000, 'x'))).size(), 65536u)
      << "the end of a line without one";
}

}  // namespace
}  // namespace wisp
