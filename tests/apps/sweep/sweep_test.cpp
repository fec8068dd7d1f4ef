#include "apps/sweep/sweep.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

/// A sweep of the program over runs of two steps.
struct TestSweep {
  TempDir dir;
  std::string config = dir.write("tiny.toml", R"(
threads = 1
timeout_s = 30.0
model = { name = "mlp", hidden = [8] }
data = { name = "synthetic", train_count = 64, test_count = 32 }
train = { batch = 32, epochs = 1, log_every = 1 }
)");
  std::string out = dir / "sweep";

  int run(const std::vector<std::string>& overrides,
          const std::string& program = WISP_PROGRAM) const {
    return run_sweep({program, config, out, overrides, 2},
                     [&](std::vector<std::string> o) { return Config::load(config, o); });
  }
  /// What a sweep says of a run of seed 1 whose program is a shell script. The sweep is a copy of
  /// this process, which has one thread: other tests' threads would take its signals.
  std::string said_of(const std::string& script, int status) const {
    const std::string program = dir.write("program.sh", "#!/bin/sh\n" + script + "\n");
    fs::permissions(program, fs::perms::owner_all);
    testing::internal::CaptureStdout();
    const pid_t copy = fork();
    if (copy == 0) {
      const int ended = run({"seed=1,1"}, program);
      std::fflush(stdout);
      _exit(ended);
    }
    int ended = 0;
    waitpid(copy, &ended, 0);
    EXPECT_TRUE(WIFEXITED(ended));
    EXPECT_EQ(WEXITSTATUS(ended), status);
    return testing::internal::GetCapturedStdout();
  }
  std::string text(const std::string& name) const { return read_text(out + "/" + name); }
  int64_t lines(const std::string& name) const {
    const std::string content = text(name);
    return std::count(content.begin(), content.end(), '\n');
  }
};

TEST(RunSweep, MakesEveryRunOnce) {
  const TestSweep sweep;
  EXPECT_EQ(sweep.run({"seed=1,2"}), 0);
  EXPECT_EQ(sweep.lines("sweep.csv"), 3);
  EXPECT_EQ(sweep.lines("sweep.md"), 5) << "and, below, what computed both";
  const std::string log = sweep.text("seed-1.log");
  EXPECT_EQ(sweep.run({"seed=1,2,3"}), 0);
  EXPECT_EQ(sweep.text("seed-1.log"), log) << "was run again";
  EXPECT_EQ(sweep.lines("sweep.csv"), 4);
}

TEST(RunSweep, GoesOnWithARunThatWasCutShort) {
  const TestSweep sweep;
  ASSERT_EQ(sweep.run({"seed=1,2"}), 0);
  fs::remove(sweep.out + "/seed-1/summary.json");
  fs::remove(sweep.out + "/seed-2/summary.json");
  fs::remove_all(sweep.out + "/seed-2/checkpoints");
  EXPECT_EQ(sweep.run({"seed=1,2"}), 0);
  EXPECT_TRUE(fs::exists(sweep.out + "/seed-1/summary.json"));
  EXPECT_EQ(sweep.lines("seed-1/metrics.jsonl"), 3) << "resumed: nothing was left to do";
  EXPECT_EQ(sweep.lines("seed-2/metrics.jsonl"), 3) << "made anew: nothing had been saved";
}

TEST(RunSweep, ARunThatFailsEndsNoOther) {
  const TestSweep sweep;
  EXPECT_EQ(sweep.run({"optimizer.lr=1e30,0.1", "train.nonfinite_max=1"}), 1);
  EXPECT_TRUE(fs::exists(sweep.out + "/lr-0.1/summary.json"));
  EXPECT_EQ(sweep.lines("sweep.csv"), 3);
  EXPECT_NE(sweep.text("sweep.md").find("| 1e30 | 1 | diverged | - |"), std::string::npos)
      << sweep.text("sweep.md");
  EXPECT_NE(sweep.text("lr-1e30.log").find("the loss was not finite"), std::string::npos);
}

TEST(RunSweep, SaysTheRightReasonOfEachEnd) {
  const TestSweep sweep;
  const auto expect = [&](const std::string& script, const std::string& failed) {
    const std::string said = sweep.said_of(script, 1);
    EXPECT_NE(said.find(failed + "\n        see "), std::string::npos) << said;
  };
  expect("echo 'wisp: no such file'; exit 1", "failed: seed-1 (status 1): wisp: no such file");
  expect("exit 3", "failed: seed-1 (status 3)");  // an earlier attempt wrote the log's last line
  expect("echo epoch 1/9; kill -KILL $$",
         "failed: seed-1 (killed by signal 9, Killed, as where memory is full)");
  expect("echo epoch 1/9; kill -SEGV $$",
         "failed: seed-1 (killed by signal 11, Segmentation fault)");
  expect("echo 'stopped after step 4'; exit 143",
         "failed: seed-1 (status 143): stopped after step 4");  // not by a signal to the sweep
}

/// Only what ended by the signal was stopped.
TEST(RunSweep, AFailureBesideASignalIsAFailure) {
  for (const auto& [script, says] : std::vector<std::pair<std::string, std::string>>{
           {"kill -TERM $PPID; sleep 100", "seed-1: stopped with status 143\n"},
           {"trap 'exit 143' TERM; kill -TERM $PPID; while :; do sleep 0.01; done",
            "seed-1: stopped with status 143\n"},
           {"trap '' TERM; kill -TERM $PPID; echo the disk is full; exit 1",
            "failed: seed-1 (status 1): the disk is full\n"}}) {
    const TestSweep sweep;
    const std::string said = sweep.said_of(script, 143);
    EXPECT_NE(said.find(says), std::string::npos) << script << ": " << said;
    EXPECT_EQ(said.find("failed") != said.npos, says.starts_with("failed")) << said;
  }
}

TEST(RunSweep, APathThatIsTooLongIsAnError) {
  TestSweep sweep;
  sweep.out = sweep.dir / std::string(300, 'x');
  EXPECT_EQ(error_of([&] { sweep.run({"seed=1,2"}); }),
            "cannot make the directory of the runs, " + sweep.out + ": File name too long");
}

TEST(RunSweep, RunsWithNamesThatAreCut) {
  const TestSweep sweep;
  std::string list = "1";
  for (int i = 2; i < 150; ++i) list += concat(",", i);
  const std::vector<std::string> overrides = {"schedule.kind=multi_step",
                                              "schedule.milestones=[1],[" + list + "]"};
  EXPECT_EQ(sweep.run(overrides), 0);
  EXPECT_EQ(sweep.lines("sweep.csv"), 3);
  testing::internal::CaptureStdout();
  EXPECT_EQ(sweep.run(overrides), 0);
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("2 of 2 runs have ended"), std::string::npos) << said;
  EXPECT_EQ(said.find(": starts"), std::string::npos) << "the same names: " << said;
}

TEST(RunSweep, RefusesARunOfAnotherConfiguration) {
  const TestSweep sweep;
  ASSERT_EQ(sweep.run({"seed=1,2", "optimizer.lr=0.1"}), 0);
  const std::string error = error_of([&] { sweep.run({"seed=1,2", "optimizer.lr=0.2"}); });
  EXPECT_NE(error.find("seed-1 holds a run with another configuration (optimizer.lr is 0.1 there, "
                       "0.2 here)"),
            std::string::npos)
      << error;
}

TEST(RunSweep, NamesAConfigurationThatCannotBeRead) {
  const TestSweep sweep;
  fs::create_directories(sweep.out + "/seed-1/config.toml");
  const std::string error = error_of([&] { sweep.run({"seed=1,2"}); });
  EXPECT_NE(error.find("/seed-1/config.toml: it is no file, but a directory"), std::string::npos)
      << error;
}

/// An earlier version wrote the keys of all schedules into a run's configuration.
TEST(RunSweep, GoesOnWhereAnEarlierVersionBegan) {
  const TestSweep sweep;
  ASSERT_EQ(sweep.run({"seed=1,2"}), 0);
  std::string saved = sweep.text("seed-1/config.toml");
  const size_t at = saved.find("[schedule]\n") + std::string("[schedule]\n").size();
  saved.insert(at, "milestones = []\npatience = 10\n");
  sweep.dir.write("sweep/seed-1/config.toml", saved);
  std::string summary = sweep.text("seed-1/summary.json");
  const size_t begin = summary.find("  \"config\": ");
  summary.erase(begin, summary.find('\n', begin) + 1 - begin);
  sweep.dir.write("sweep/seed-1/summary.json", summary);
  const std::string log = sweep.text("seed-1.log");
  EXPECT_EQ(sweep.run({"seed=1,2,3"}), 0);
  EXPECT_EQ(sweep.text("seed-1.log"), log) << "was run again";
}

/// A summary may be older than the checkpoints or the configuration beside it.
TEST(RunSweep, TakesNoSummaryForThatOfAnotherRun) {
  const TestSweep sweep;
  ASSERT_EQ(sweep.run({"seed=1"}), 0);
  const std::string name = "run";
  std::string summary = sweep.text(name + "/summary.json");
  summary.replace(summary.find("\"steps\": 2"), 10, "\"steps\": 1");
  sweep.dir.write("sweep/" + name + "/summary.json", summary);
  EXPECT_EQ(sweep.run({"seed=1"}), 0);
  EXPECT_NE(sweep.text(name + "/summary.json").find("\"steps\": 2"), std::string::npos);

  std::string config = sweep.text(name + "/config.toml");
  config.replace(config.find("\nlr = 0.1\n"), 10, "\nlr = 0.7\n");
  sweep.dir.write("sweep/" + name + "/config.toml", config);
  EXPECT_EQ(sweep.run({"seed=1", "optimizer.lr=0.7"}), 1) << "nothing was trained with this rate";
  EXPECT_EQ(sweep.lines("sweep.csv"), 1) << sweep.text("sweep.csv");
  EXPECT_NE(sweep.text(name + ".log").find("of another configuration than config.toml"),
            std::string::npos)
      << sweep.text(name + ".log");
}

TEST(RunSweep, LeavesTheTablesOfOthersAlone) {
  const TestSweep sweep;
  sweep.dir.write("sweep/sweep.md", "# my notes");
  const std::string error = error_of([&] { sweep.run({"seed=1"}); });
  EXPECT_NE(error.find("sweep.md is there, and no sweep or table wrote it"), std::string::npos)
      << error;
  EXPECT_EQ(sweep.text("sweep.md"), "# my notes");
  EXPECT_FALSE(fs::exists(sweep.out + "/runs.lock"));
}

TEST(RunSweep, RefusesADirectoryThatAnotherOneWorksIn) {
  const TestSweep sweep;
  const std::string path = sweep.dir.write("sweep/runs.lock", "");
  const int lock = open(path.c_str(), O_RDWR);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_NE(error_of([&] { sweep.run({"seed=1"}); }).find("held by another process"),
            std::string::npos);
  close(lock);
}

}  // namespace
}  // namespace wisp
