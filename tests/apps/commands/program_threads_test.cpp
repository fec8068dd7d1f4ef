// Tests of how many threads the program takes, and of numbers that it cannot have.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/tensor/tensor.h"
#include "data/decoding/image_file.h"
#include "tests/support/command.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

/// Runs `wisp ARGUMENTS` with variables in its environment; none of OpenMP's numbers is inherited.
CommandResult with(const std::string& variables, const std::string& arguments) {
  return run_command(concat("env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT ", variables,
                            " timeout -s KILL 60 ", WISP_PROGRAM, " ", arguments));
}

/// The threads of a run's workers, by its summary.
int threads_of(const std::string& run) {
  const std::string text =
      nlohmann::json::parse(read_text(run + "/summary.json"))["numerics"].get<std::string>();
  const size_t end = text.find(" threads, ");
  return std::stoi(text.substr(text.rfind(' ', end - 1) + 1));
}

struct ThreadsRun {
  TempDir dir;
  std::string config = dir.write("tiny.toml", tiny_text(kTinyModel));
  std::string out = dir / "run";

  CommandResult train(const std::string& variables, const std::string& overrides) const {
    return with(variables, concat("train ", config, " train.epochs=1 ", overrides,
                                  " --overwrite --out ", out));
  }
};

bool says(const CommandResult& result, const std::string& words) {
  return result.output.find(words) != std::string::npos;
}

TEST(ProgramThreads, ByDefaultAreAtMostThoseOfTheEnvironment) {
  const ThreadsRun run;
  for (const char* variables : {"OMP_NUM_THREADS=1", "OMP_NUM_THREADS=1,4", "OMP_THREAD_LIMIT=1",
                                "'OMP_PLACES=threads(1)'"}) {
    const CommandResult result = run.train(variables, "threads=0");
    ASSERT_EQ(result.status, 0) << result.output;
    EXPECT_EQ(threads_of(run.out), 1) << variables;
    if (std::thread::hardware_concurrency() > 1) {
      EXPECT_TRUE(says(result, "\nthreads: 1 of each worker (")) << result.output;
    }
  }
}

TEST(ProgramThreads, GivenByTheUserAreTakenWhateverTheDefault) {
  const ThreadsRun run;
  const CommandResult result = run.train("OMP_NUM_THREADS=1 OMP_DYNAMIC=true", "threads=3");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(threads_of(run.out), 3);
  EXPECT_FALSE(says(result, "of each worker")) << result.output;
}

TEST(ProgramThreads, ThatOpenMpDoesNotGrantAreAnError) {
  const ThreadsRun run;
  for (const int workers : {1, 2, 4}) {
    const CommandResult result =
        run.train("OMP_THREAD_LIMIT=2", concat("threads=3 workers=", workers));
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(says(result,
                     "threads is 3, but OpenMP grants 2 (OMP_THREAD_LIMIT is 2); "
                     "expected at most 2\n"))
        << result.output;
  }
  EXPECT_EQ(run.train("OMP_THREAD_LIMIT=2", "threads=2 workers=4").status, 0)
      << "the limit is each worker's own";
  const CommandResult comm = run.train("OMP_THREAD_LIMIT=1", "comm_threads=2");
  EXPECT_EQ(comm.status, 1);
  EXPECT_TRUE(says(comm, "comm_threads is 2, but OpenMP grants 1 (")) << comm.output;
  const CommandResult codec =
      with("OMP_THREAD_LIMIT=1", "bench codec --method fp16 --numel 1000 --threads 2 --seconds 0");
  EXPECT_EQ(codec.status, 1);
  EXPECT_TRUE(says(codec, "threads is 2, but OpenMP grants 1 (")) << codec.output;
}

TEST(ProgramThreads, OfAPredictionAreLoweredWithANotice) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.epochs=1"});
  Tensor image({32, 32, 3}, DType::u8);
  image.clear();
  write_image(dir / "a.png", image);
  const std::string command = concat("predict ", dir / "run", " threads=2 --json ", dir / "a.png");
  const CommandResult free = with("", command);
  ASSERT_EQ(free.status, 0) << free.output;
  const CommandResult limited = with("OMP_THREAD_LIMIT=1", command);
  EXPECT_EQ(limited.status, 0) << limited.output;
  EXPECT_TRUE(says(limited, "threads is 2, but OpenMP grants 1 here")) << limited.output;
  EXPECT_TRUE(limited.output.ends_with(free.output)) << limited.output << free.output;
}

TEST(ProgramThreads, BeyondAllMeasureAreRefusedByName) {
  const ThreadsRun run;
  const auto refused = [&](const std::string& key, const std::string& range) {
    for (const char* number : {"1025", "1000000", "2147483647", "-1"}) {
      const CommandResult result = run.train("", concat(key, "=", number));
      EXPECT_EQ(result.status, 1) << result.output;
      EXPECT_TRUE(says(result, concat(key, " is ", number, ", expected ", range))) << result.output;
    }
  };
  refused("threads", "0 to 1024");
  refused("comm_threads", "1 to 1024");
  refused("data.threads", "0 to 1024");
  const CommandResult workers =
      run.train("", "workers=1025 train.batch=1025 data.train_count=1025 data.test_count=1025");
  EXPECT_EQ(workers.status, 1);
  EXPECT_TRUE(says(workers, "workers is 1025, expected at most 1024")) << workers.output;
  for (const std::string& command :
       {concat("sweep ", run.config, " seed=1,2 --jobs"), std::string("table dgc-cifar10 --jobs"),
        std::string("pack . out --jobs"), std::string("bench codec --all --threads")})
    for (const char* number : {"1025", "1000000", "0"})
      EXPECT_NE(with("", concat(command, " ", number)).status, 0) << command;
}

TEST(ProgramThreads, ThatTheSystemDoesNotStartAreAnError) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer takes all addresses";
#endif
  const ThreadsRun run;
  const std::string few = "prlimit --as=600000000 ";  // some 40 stacks of threads
  const CommandResult result = run_command(
      concat(few, WISP_PROGRAM, " train ", run.config, " threads=1000 --out ", run.out));
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(says(result, "threads is 1000, but after ")) << result.output;
  EXPECT_TRUE(says(result, "ulimit -v")) << result.output;
}

TEST(ProgramThreads, WithTooLittleStackAreAnError) {
  const ThreadsRun run;
  const CommandResult result = run.train("OMP_STACKSIZE=64K", "threads=2");
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(says(
      result, "OpenMP's threads have stacks of 64 KiB, expected 256 or more; are stacks limited"))
      << result.output;
}

TEST(ProgramThreads, OfASweepsRunsShareTheCores) {
  const ThreadsRun run;
  const auto sweep = [&](const std::string& jobs, const std::string& overrides) {
    std::filesystem::remove_all(run.out);
    const CommandResult result = with("", concat("sweep ", run.config, " train.epochs=1 seed=1,2 ",
                                                 overrides, " --jobs ", jobs, " --out ", run.out));
    EXPECT_EQ(result.status, 0) << result.output;
    return threads_of(run.out + "/seed-1");
  };
  const int alone = sweep("1", "threads=0");
  EXPECT_EQ(sweep("2", "threads=0"), std::max(1, alone / 2));
  EXPECT_EQ(sweep("100", "threads=0"), std::max(1, alone / 2)) << "there are two runs";
  EXPECT_EQ(sweep("2", "threads=3"), 3);
}

}  // namespace
}  // namespace wisp
