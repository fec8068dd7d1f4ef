// Tests of the program under mpirun when one rank has other arguments than the rest.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "apps/interchange/exchange.h"
#include "tests/support/command.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

/// Tests with three ranks. Rank 1 gets the arguments `other`; ranks 0 and 2 get `common`.
class Disagreement : public testing::Test {
 protected:
  CommandResult train(const std::string& common, const std::string& other) const {
    const std::string config = dir_.write("tiny.toml", tiny_text(kTinyModel));
    return run(config, dir_ / "run", common, dir_ / "run", other);
  }
  CommandResult run(const std::string& config, const std::string& out, const std::string& common,
                    const std::string& out_of_1, const std::string& other) const {
    const std::string always = WISP_PROGRAM " train " + config + " train.batch=24 train.epochs=1 ";
    const std::string of_all = always + common + " --out " + out;
    return run_command(concat(WISP_MPIRUN " -n 1 ", of_all, " : -n 1 ", always, other, " --out ",
                              out_of_1, " : -n 1 ", of_all));
  }
  std::vector<std::string> files_in(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_ / folder))
      names.push_back(entry.path().filename().string());
    return names;
  }
  /// Expects that the run fails, that rank 0 prints the line once, and that no run begins.
  void expect_refused(const CommandResult& result, const std::string& line) const {
    EXPECT_EQ(result.status, 1) << result.output;
    const size_t at = result.output.find(line);
    ASSERT_NE(at, std::string::npos) << "expected " << line << "\n" << result.output;
    EXPECT_EQ(result.output.find(line, at + 1), std::string::npos) << result.output;
    EXPECT_FALSE(std::filesystem::exists(dir_ / "run/config.toml"));
  }

  TempDir dir_;
};

TEST_F(Disagreement, OfAConfigurationIsNamedKeyByKey) {
  const CommandResult result =
      train("", "optimizer.lr=0.5 seed=2 data.seed=7 timeout_s=29 compression.bucket_bytes=0");
  for (const char* line : {"\n  optimizer.lr: ranks 0, 2 have 0.1, rank 1 has 0.5\n",
                           "\n  seed: ranks 0, 2 have 1, rank 1 has 2\n",
                           "\n  data.seed: ranks 0, 2 have 1, rank 1 has 7\n",
                           "\n  timeout_s: ranks 0, 2 have 30.0, rank 1 has 29.0\n",
                           "\n  compression.bucket_bytes: ranks 0, 2 have 16384, rank 1 has 0\n"})
    expect_refused(result, line);
}

TEST_F(Disagreement, OfMethodAndDeviceIsNamedBeforeTheyMeet) {
  const CommandResult result = train("", "compression.method=dgc device=emulated");
  expect_refused(result, "\n  device: ranks 0, 2 have \"cpu\", rank 1 has \"emulated\"\n");
  expect_refused(result, "\n  compression.method: ranks 0, 2 have \"none\", rank 1 has \"dgc\"\n");
}

TEST_F(Disagreement, OfTheNumberOfWorkersIsSettledByTheProcesses) {
  const CommandResult result = train("workers=4", "workers=2");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("workers is 4, but mpirun (or srun) started 3 processes"),
            std::string::npos)
      << result.output;
  EXPECT_TRUE(std::filesystem::exists(dir_ / "run/summary.json"));
}

TEST_F(Disagreement, OfWhatMachinesHaveOfTheirOwnIsNone) {
  const CommandResult result = train("", "threads=2 comm_threads=2 data.threads=0");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_TRUE(std::filesystem::exists(dir_ / "run/summary.json"));
}

TEST_F(Disagreement, OfTheFileThatWeightsStartFromIsNamed) {
  for (const char* seed : {"1", "2"}) {
    tiny_train(dir_ / seed, {concat("seed=", seed), "train.max_steps=1"});
    export_run(dir_ / seed, dir_ / concat(seed, ".safetensors"), {});
  }
  expect_refused(
      train("model.init=" + (dir_ / "1.safetensors"), "model.init=" + (dir_ / "2.safetensors")),
      "the file of model.init: ranks 0, 2 have ");
}

TEST_F(Disagreement, OfATextIsNamedAndItsPlaceIsNot) {
  std::string other = tiny_lines(100);
  other.replace(other.find("five six seven"), 14, "seven six five");
  const std::string config = dir_.write("text.toml", R"(
model = { name = "lstm_lm", layers = 1, units = 12 }
data = { name = "text", window = 9 }
optimizer = { lr = 2.0, momentum = 0.0 }
)");
  const std::string few = " train.batch=6 data.path=";
  const std::string text = few + dir_.write("text", tiny_lines(100));
  expect_refused(run(config, dir_ / "run", text, dir_ / "run", few + dir_.write("other", other)),
                 "the train data: ranks 0, 2 have ");
  const CommandResult copied =
      run(config, dir_ / "run", text, dir_ / "run", few + dir_.write("copy", tiny_lines(100)));
  EXPECT_EQ(copied.status, 0) << copied.output;
}

TEST_F(Disagreement, OfResumingOrOfWhatIsResumedIsNamed) {
  const std::string config = dir_.write("tiny.toml", tiny_text(kTinyModel));
  const auto resumed = [&](const std::string& of_1) {
    return run(config, dir_ / "whole", "--resume", dir_ / of_1, of_1 == "new" ? "" : "--resume");
  };
  const Overrides run = {"workers=3", "train.batch=24", "train.epochs=1"};
  tiny_train(dir_ / "whole", run + Overrides{"train.max_steps=3"});
  tiny_train(dir_ / "apart", run + Overrides{"train.max_steps=3", "seed=2"});
  expect_refused(resumed("new"), "--resume: ranks 0, 2 have yes, rank 1 has no\n");
  for (const char* other : {"apart", "nothing"})
    expect_refused(resumed(other), concat("\n  rank 1 has ", dir_ / other, " on "));
}

/// Before anything of a run is written, and with nothing left behind.
TEST_F(Disagreement, OfTheRunDirectoryIsNamedWithHostAndPaths) {
  const std::string config = dir_.write("tiny.toml", tiny_text(kTinyModel));
  std::filesystem::create_directory(dir_ / "there");
  std::filesystem::create_directory_symlink(dir_ / "there", dir_ / "link");
  const auto train = [&](const std::string& out, const std::string& out_of_1,
                         const std::string& how = "") {
    return run(config, out, how, out_of_1, how);
  };
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  for (const std::string& other :
       {std::string("other"), std::string("there"), std::string("a/folder/deeper")}) {
    const CommandResult result = train(dir_ / "run", dir_ / other);
    expect_refused(
        result, concat("all ranks have to see one run directory, rank 0's: ", dir_ / "run", " on ",
                       host, "\n  rank 1 has ", dir_ / other, " on ", host, "\n"));
    EXPECT_FALSE(std::filesystem::exists(dir_ / "run")) << "nothing was trained there";
  }
  EXPECT_EQ(files_in("there"), std::vector<std::string>());
  EXPECT_FALSE(std::filesystem::exists(dir_ / "other"));
  const CommandResult same = train(dir_ / "there", dir_ / "./link");
  EXPECT_EQ(same.status, 0) << same.output;
  EXPECT_TRUE(std::filesystem::exists(dir_ / "there/summary.json"));
  EXPECT_EQ(std::ranges::count_if(files_in("there"),
                                  [](const auto& name) { return name.starts_with(".wisp-"); }),
            0);
}

/// A copy has the same checkpoints, but rank 0 would never see what is saved there.
TEST_F(Disagreement, OfACopiedRunDirectoryIsNamedBeforeAStep) {
  const std::string config = dir_.write("tiny.toml", tiny_text(kTinyModel));
  tiny_train(dir_ / "whole",
             {"workers=3", "train.batch=24", "train.epochs=1", "train.max_steps=3"});
  std::filesystem::copy(dir_ / "whole", dir_ / "copy", std::filesystem::copy_options::recursive);
  const std::string before = read_text(dir_ / "whole/metrics.jsonl");
  const CommandResult result = run(config, dir_ / "whole", "--resume", dir_ / "copy", "--resume");
  expect_refused(result, concat("\n  rank 1 has ", dir_ / "copy", " on "));
  EXPECT_EQ(read_text(dir_ / "whole/metrics.jsonl"), before);
  EXPECT_EQ(checkpoint_content(dir_ / "whole", 3), checkpoint_content(dir_ / "copy", 3));
}

TEST_F(Disagreement, OfTheEvaluatedRunIsNamed) {
  const Overrides run = {"workers=2", "train.max_steps=1"};
  tiny_train(dir_ / "one", run);
  tiny_train(dir_ / "two", run + Overrides{"train.max_steps=2"});
  const std::string eval = WISP_PROGRAM " eval " + (dir_ / "one");
  const std::string common = " train.max_steps=1";
  const CommandResult result = run_command(concat(
      WISP_MPIRUN " -n 1 ", eval, common, " : -n 1 " WISP_PROGRAM " eval ", dir_ / "two", common));
  const std::string step = "the checkpoint of step 1 (all ranks have to see one run directory): ";
  expect_refused(result, step + "rank 0 has manifest ");
  EXPECT_NE(result.output.find("rank 1 has none in its folder"), std::string::npos)
      << result.output;
}

TEST_F(Disagreement, OfAnEvaluationIsNamed) {
  tiny_train(dir_ / "whole", {"workers=2", "train.max_steps=1"});
  const std::string eval = WISP_PROGRAM " eval " + (dir_ / "whole");
  const CommandResult result =
      run_command(concat(WISP_MPIRUN " -n 1 ", eval, " : -n 1 ", eval, " data.test_count=30"));
  expect_refused(result, "data.test_count: rank 0 has 40, rank 1 has 30\n");
}

}  // namespace
}  // namespace wisp
