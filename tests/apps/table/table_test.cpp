// Tables from their runs to their page, by the program.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/program.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

/// A table of drawn data whose runs take a second or so.
class Table : public Program {
 protected:
  Table() {
    dir_.write("tiny.toml", R"(
threads = 1
workers = 2
timeout_s = 30.0
model = { name = "mlp", hidden = [8] }
data = { name = "synthetic", train_count = 512, test_count = 64 }
train = { batch = 32, epochs = 2, log_every = 8 }
)");
    table_ = dir_.write("drawn.toml", R"(
title = "Drawn data"
source = "nobody, table 0"
dense = "none"
seeds = [1, 2]
[small]
config = "tiny.toml"
target = 1
[[rows]]
name = "topk"
overrides = ["compression.method=topk", "compression.ratio=0.1"]
[[rows]]
name = "wild"
overrides = ["optimizer.lr=1e30", "train.nonfinite_max=1"]
[[rows]]
name = "none"
overrides = ["compression.method=none"]
published = 50.0
)");
    out_ = dir_ / "tables";
    runs_ = out_ + "/drawn-small/";
  }
  std::vector<std::string> command(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"table", table_, "--out", out_, "--nice", "0"});
    return more;
  }
  std::string text(const std::string& name) const { return read_text(runs_ + name); }

  std::string table_, out_, runs_;
};

TEST_F(Table, GoesFromRunsToAPage) {
  ASSERT_EQ(run(command()), 0) << said();
  EXPECT_NE(said().find("[1/6] none-s1: starts"), std::string::npos) << said();
  EXPECT_NE(said().find("wild-s1: diverged"), std::string::npos) << said();
  EXPECT_NE(said().find("6 of 6 runs have ended"), std::string::npos) << said();
  EXPECT_NE(text("table.md").find("| wild | -         | diverged (2 of 2 diverged)"),
            std::string::npos)
      << text("table.md");
  EXPECT_EQ(text("table.md").find("not recorded"), std::string::npos) << text("table.md");
  EXPECT_NE(text("table.html").find("<svg "), std::string::npos);
  EXPECT_NE(text("table.svg").find(">topk</text>"), std::string::npos);
  EXPECT_NE(text("results.csv").find("\ntopk-s2,topk,2,"), std::string::npos);
  EXPECT_EQ(text("results.csv").find("wild"), std::string::npos) << "it has no figures";

  const auto made = fs::last_write_time(runs_ + "none-s1/summary.json");
  ASSERT_EQ(run(command()), 0) << said();
  EXPECT_EQ(fs::last_write_time(runs_ + "none-s1/summary.json"), made) << "was run again";
  EXPECT_NE(said().find("wild-s2: has ended before"), std::string::npos) << said();
  ASSERT_EQ(run(command({"--show"})), 0);
  EXPECT_NE(said().find("| topk |"), std::string::npos) << said();
}

TEST_F(Table, GoesOnAfterItWasKilled) {
  start(command({"train.epochs=50"}));
  while (read_text(runs_ + "topk-s1/metrics.jsonl").empty()) usleep(1000);
  signal(SIGTERM);
  ASSERT_EQ(wait(), 143) << said();
  EXPECT_NE(said().find("the same command goes on"), std::string::npos) << said();
  EXPECT_NE(text("table.md").find("1 of 2 seeds"), std::string::npos) << text("table.md");
  const std::string before = text("none-s1/summary.json");
  ASSERT_EQ(run(command({"train.epochs=50"})), 0) << said();
  EXPECT_NE(said().find("[2/6] topk-s1: goes on"), std::string::npos) << said();
  EXPECT_EQ(text("none-s1/summary.json"), before);
  EXPECT_EQ(text("table.md").find("1 of 2 seeds"), std::string::npos) << text("table.md");
}

TEST_F(Table, RefusesRunsOfAnotherConfiguration) {
  ASSERT_EQ(run(command({"--seeds", "1"})), 0) << said();
  EXPECT_EQ(run(command({"--seeds", "1", "train.epochs=1"})), 1);
  EXPECT_NE(said().find("none-s1 holds a run with another configuration (train.epochs is 2 there, "
                        "1 here)"),
            std::string::npos)
      << said();
}

TEST_F(Table, ASeedIsNoOverride) {
  EXPECT_EQ(run(command({"seed=3"})), 1);
  EXPECT_NE(said().find("the override seed=3 is not for a row; give --seeds"), std::string::npos)
      << said();
}

TEST_F(Table, PlansWithoutTraining) {
  ASSERT_EQ(run(command({"--dry"})), 0) << said();
  EXPECT_NE(said().find("| none | 2      | 2       | 32    | 32    |"), std::string::npos)
      << said();
  EXPECT_FALSE(fs::exists(out_));
  EXPECT_EQ(run({"table", "no-such"}), 1);
  EXPECT_NE(said().find("there is no table 'no-such', expected a file or one of:"),
            std::string::npos)
      << said();
}

TEST_F(Table, TheListSaysWhatTheyTrainAndCost) {
  ASSERT_EQ(run({"table", "--out", out_}), 0) << said();
  EXPECT_NE(said().find("| dgc-ptb "), std::string::npos) << said();
  EXPECT_NE(said().find("| lstm_lm "), std::string::npos) << said();
  EXPECT_NE(said().find("| resnet_cifar 110 | cifar10 "), std::string::npos) << said();
  EXPECT_NE(said().find("| -    | 0 of "), std::string::npos) << said();
  ASSERT_EQ(run({"table", "--out", out_, "--scale", "paper"}), 0) << said();
  EXPECT_EQ(said().find("| small"), std::string::npos) << said();
  EXPECT_NE(run({"table", "train.epochs=1"}), 0) << "without --dry";
  EXPECT_NE(said().find("trains nothing"), std::string::npos) << said();

  const std::string tables = dir_ / "known/apps/tables/";
  fs::create_directories(tables);
  fs::rename(dir_ / "tiny.toml", tables + "../tiny.toml");
  std::string drawn = read_text(table_);
  drawn.replace(drawn.find("tiny.toml"), 9, "../tiny.toml");
  dir_.write("known/apps/tables/drawn.toml", drawn);
  dir_.write("known/apps/tables/lacking.toml",
             drawn + "[paper]\nconfig = \"../tiny.toml\"\noverrides = [\"model.name=none\"]\n");
  const std::string in_known = concat("cd ", dir_ / "known", " && exec ", WISP_PROGRAM, " table ");
  start_command({"/bin/sh", "-c", in_known + "--dry --seeds 3"});
  ASSERT_EQ(wait(), 0) << said();
  EXPECT_NE(said().find("| drawn   | nobody, table 0 | mlp   | synthetic | small |"),
            std::string::npos)
      << said();
  EXPECT_NE(said().find(" s | 0 of 9 "), std::string::npos) << "has no cost:\n" << said();
  EXPECT_NE(said().find("lacking, paper: "), std::string::npos) << said();
}

}  // namespace
}  // namespace wisp
