// Tests of the program under mpirun: its results equal those of threads, and failures end it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/setup/methods.h"
#include "tests/support/command.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

constexpr double kLimitS = 10.0;  // promised limit, on a busy machine too

/// `wisp train` of the tiny configuration, by `processes` processes.
std::string train_command(const TempDir& dir, int processes, const std::string& out,
                          const Overrides& overrides, const std::string& mpirun = WISP_MPIRUN) {
  std::string command = concat(mpirun, " -n ", processes, " " WISP_PROGRAM " train ",
                               dir.write("tiny.toml", tiny_text(kTinyModel)), " --out ", dir / out);
  for (const std::string& key : overrides) command += " '" + key + "'";
  return command;
}

size_t count_of(const std::string& word, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

class Processes : public testing::TestWithParam<std::string> {};

TEST_P(Processes, LeaveTheSameStateAsThreads) {
  for (const int workers : {2, 4}) {
    SCOPED_TRACE(workers);
    const TempDir dir;
    const Overrides overrides = method_overrides(GetParam()) + Overrides{"train.epochs=2"};
    tiny_train(dir / "threads", overrides + Overrides{concat("workers=", workers)});
    const CommandResult run = run_command(train_command(dir, workers, "processes", overrides));
    ASSERT_EQ(run.status, 0) << run.output;
    // all weights, momenta, residuals and counters of all ranks
    const auto files = checkpoint_content(dir / "threads", 8);
    EXPECT_EQ(files.size(), static_cast<size_t>(workers) + 2);
    EXPECT_TRUE(checkpoint_content(dir / "processes", 8) == files);
    EXPECT_EQ(read_text(dir / "processes/config.toml"), read_text(dir / "threads/config.toml"));
    const Summary threads = Summary::from_json(dir / "threads/summary.json");
    const Summary processes = Summary::from_json(dir / "processes/summary.json");
    EXPECT_EQ(processes.bytes_sent, threads.bytes_sent);
    EXPECT_EQ(processes.bytes_received, threads.bytes_received);
    EXPECT_EQ(processes.bytes_encoded, threads.bytes_encoded);
    EXPECT_EQ(processes.score("test_accuracy"), threads.score("test_accuracy"));
  }
}

INSTANTIATE_TEST_SUITE_P(Mpi, Processes, testing::ValuesIn(method_names()),
                         [](const auto& parameter) { return parameter.param; });

TEST(Mpi, RankZeroAlonePrintsAndTheTraceHasAllRanks) {
  const TempDir dir;
  const CommandResult run = run_command(
      train_command(dir, 3, "run", {"train.batch=24", "trace.first_step=1", "trace.steps=2"}));
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(count_of("epoch 4: ", run.output), 1u) << run.output;
  EXPECT_EQ(count_of("images/s, ", run.output), 1u) << run.output;
  const auto trace = nlohmann::json::parse(read_text(dir / "run/trace.json"));
  std::map<int, std::pair<double, double>> times;  // first begin and last end of each worker
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts"), end = begin + event.at("dur").get<double>();
    auto& [first, last] = times.try_emplace(event.at("pid"), begin, end).first->second;
    first = std::min(first, begin);
    last = std::max(last, end);
  }
  ASSERT_EQ(times.size(), 3u);
  for (const auto& [worker, time] : times) {  // one clock: all trace the same two steps
    EXPECT_LT(time.first, times.at(1).second) << worker;
    EXPECT_GT(time.second, times.at(1).first) << worker;
  }
}

TEST(Mpi, TheSummaryNamesTheRankThatIsComputedOtherwise) {
  const TempDir dir;
  const std::string train =
      concat(WISP_PROGRAM " train ", dir.write("tiny.toml", tiny_text(kTinyModel)),
             " train.max_steps=2 --out ", dir / "run");
  const CommandResult run = run_command(
      concat(WISP_MPIRUN " -n 1 ", train, " : -n 1 env ONEDNN_MAX_CPU_ISA=SSE41 ", train));
  ASSERT_EQ(run.status, 0) << run.output;
  const std::string numerics = Summary::from_json(dir / "run/summary.json").numerics;
  if (numerics.find("onednn") == numerics.npos) GTEST_SKIP() << "built without oneDNN";
  const size_t second = numerics.find("; rank 1: onednn ");
  ASSERT_NE(second, numerics.npos) << numerics;
  EXPECT_EQ(numerics.find(" SSE41, "), numerics.find(' ', second + 17)) << numerics;
}

TEST(Mpi, GoOnWhereThreadsStoppedAndTheOtherWayRound) {
  const TempDir dir;
  tiny_train(dir / "whole", {"workers=2", "compression.method=dgc", "compression.ratio=0.05"});
  const Overrides dgc = {"compression.method=dgc", "compression.ratio=0.05"};
  tiny_train(dir / "cut", dgc + Overrides{"workers=2", "train.max_steps=6"});
  CommandResult run = run_command(
      train_command(dir, 2, "cut", dgc + Overrides{"train.max_steps=11"}) + " --resume");
  ASSERT_EQ(run.status, 0) << run.output;
  tiny_train(dir / "cut", dgc + Overrides{"workers=2"}, RunDirectory::Open::resume);
  EXPECT_TRUE(checkpoint_content(dir / "cut", 16) == checkpoint_content(dir / "whole", 16));
}

TEST(Mpi, EvaluatesLikeThreads) {
  const TempDir dir;
  tiny_train(dir / "run", {"workers=2", "train.max_steps=2"});
  const CommandResult run = run_command_apart(
      "echo as a launcher may >&2; " WISP_MPIRUN " -n 2 " WISP_PROGRAM " eval " + (dir / "run"));
  const CommandResult alone = run_command_apart(WISP_PROGRAM " eval " + (dir / "run"));
  EXPECT_EQ(run.status, 0) << run.errors;
  EXPECT_NE(run.errors.find("as a launcher may"), std::string::npos);
  EXPECT_EQ(run.output, alone.output);
}

TEST(Mpi, AWrongConfigurationIsToldOnce) {
  const TempDir dir;
  const CommandResult run = run_command(train_command(dir, 2, "run", {"train.bach=3"}));
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(count_of("did you mean 'train.batch'?", run.output), 1u) << run.output;
}

TEST(Mpi, ADirectoryThatHoldsARunIsRefused) {
  const TempDir dir;
  tiny_train(dir / "run", {"workers=2", "train.max_steps=1"});
  const auto before = checkpoint_content(dir / "run", 1);
  const CommandResult run = run_command(train_command(dir, 2, "run", {}));
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(count_of("holds a run already", run.output), 1u) << run.output;
  EXPECT_TRUE(checkpoint_content(dir / "run", 1) == before);
}

TEST(Mpi, ALauncherThatMpiDoesNotSeeIsNoticed) {
  const CommandResult run = run_command("OMPI_COMM_WORLD_SIZE=2 " WISP_PROGRAM " methods");
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.output.find("the launcher started 2 processes, but MPI sees 1"), std::string::npos)
      << run.output;
}

/// A process whose command line contains `word` and whose file `file` in /proc contains `text`; 0
/// if there is none.
pid_t process_of(const std::string& word, const std::string& file, const std::string& text) {
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string path = entry.path().string();
    if (read_text(path + "/cmdline").find(word) == std::string::npos) continue;
    if (read_text(path + "/" + file).find(text) != std::string::npos)
      return std::stoi(entry.path().filename().string());
  }
  return 0;
}

pid_t rank_process(int rank, const std::string& word) {
  std::string variable = concat("OMPI_COMM_WORLD_RANK=", rank);
  variable.push_back('\0');
  return process_of(word, "environ", variable);
}

/// A run of four processes that ends only on a signal.
class EndlessRun {
 public:
  explicit EndlessRun(const std::string& mpirun = WISP_MPIRUN, const Overrides& more = {})
      : result_(std::async(std::launch::async, [this, mpirun, more] {
          return run_command(train_command(
              dir_, kRanks, "run",
              Overrides{"data.train_count=12800", "train.epochs=100", "train.eval_every=0",
                        "train.log_every=1000000", "optimizer.lr=0.0001"} +
                  more,
              mpirun));
        })) {}

  std::string path() const { return dir_ / "run"; }
  /// Sends `signal` to the process of `rank`, or to mpirun if that is -1. It waits until the run
  /// trains and all ranks have their handlers.
  void signal_rank(int rank, int signal) {
    const auto running = [&] {
      return result_.wait_for(std::chrono::milliseconds(10)) == std::future_status::timeout;
    };
    while (running() && !under_way()) continue;
    const pid_t process = rank < 0 ? process_of(path(), "comm", "mpi") : rank_process(rank, path());
    ASSERT_GT(process, 0) << result_.get().output;
    kill(process, signal);
  }
  CommandResult end() { return result_.get(); }

 private:
  bool under_way() const {
    for (int rank = 0; rank < kRanks; ++rank)
      if (!catches(rank_process(rank, path()), SIGTERM)) return false;
    return std::filesystem::exists(path() + "/metrics.jsonl");
  }

  static constexpr int kRanks = 4;
  TempDir dir_;
  std::future<CommandResult> result_;
};

TEST(Mpi, AKilledRankEndsTheOthersWithItsName) {
  EndlessRun run;
  ASSERT_NO_FATAL_FAILURE(run.signal_rank(2, SIGKILL));
  const double killed = now_us();
  const CommandResult result = run.end();
  EXPECT_LT((now_us() - killed) * 1e-6, kLimitS) << result.output;
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.output.find("rank 2"), std::string::npos) << result.output;
  EXPECT_FALSE(std::filesystem::exists(run.path() + "/summary.json"));
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(rank_process(rank, run.path()), 0) << rank;
}

TEST(Mpi, ARankThatStandsStillIsNamedAndNothingHangs) {
  EndlessRun run(WISP_MPIRUN, {"timeout_s=5"});
  ASSERT_NO_FATAL_FAILURE(run.signal_rank(2, SIGSTOP));
  const double stopped = now_us();
  const CommandResult result = run.end();
  EXPECT_LT((now_us() - stopped) * 1e-6, 5.0 + kLimitS) << result.output;
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.output.find("rank 2"), std::string::npos) << result.output;
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(rank_process(rank, run.path()), 0) << rank;
}

/// The step whose saved checkpoint the program has reported; -1 if it reported none.
int64_t saved_step(const std::string& output) {
  const std::string words = "stopped after step ";
  const size_t at = output.find(words);
  return at == std::string::npos ? -1 : std::stoll(output.substr(at + words.size()));
}

TEST(Mpi, ASignalToOneRankLetsAllSaveTheSameStep) {
  EndlessRun run;
  ASSERT_NO_FATAL_FAILURE(run.signal_rank(3, SIGTERM));
  const CommandResult result = run.end();
  EXPECT_EQ(result.status, 143) << result.output;
  const int64_t step = saved_step(result.output);
  ASSERT_GT(step, 0) << result.output;
  EXPECT_EQ(checkpoint_content(run.path(), step).size(), 6u);  // manifest, shared, four ranks
}

// mpirun ends with status 1, as it has killed the job.
TEST(Mpi, CtrlCOfMpirunLetsAllSave) {
  EndlessRun run(WISP_MPIRUN " --mca odls_base_sigkill_timeout 3");
  ASSERT_NO_FATAL_FAILURE(run.signal_rank(-1, SIGINT));
  const CommandResult result = run.end();
  EXPECT_NE(result.status, 0);
  const int64_t step = saved_step(result.output);
  ASSERT_GT(step, 0) << result.output;
  EXPECT_EQ(checkpoint_content(run.path(), step).size(), 6u);
}

}  // namespace
}  // namespace wisp
