#include "apps/run/run_directory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "apps/interchange/exchange.h"
#include "apps/version.h"
#include "tests/support/error_of.h"
#include "tests/support/files_in.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;
using Open = RunDirectory::Open;

const Overrides kOne = {"train.max_steps=1"};

struct Foreign {
  std::vector<std::pair<const char*, const char*>> files;
  const char* named;
};

TEST(RunDirectory, IsNoneOfAnotherProgram) {
  const std::vector<Foreign> folders = {
      {{{"checkpoints/epoch=3.ckpt", "weights"},
        {"gradients/notes.npy", "mine"},
        {"config.toml", "title = \"my project\"\n"}},
       "config.toml"},
      {{{"checkpoints/epoch=3.ckpt", "weights"}}, "checkpoints"},
      {{{"checkpoints/step_12/model.pt", "weights"}}, "checkpoints"},
      {{{"checkpoints/step_12", "weights"}}, "checkpoints"},
      {{{"gradients/rank_0/notes.txt", "mine"}}, "gradients"},
      {{{"config.toml", "seed = 1\n"}, {"commit.txt", "c0ffee\n"}}, "config.toml"},
      {{{"commit.txt", "1.0.0: first release (draft)\nmore\n"}}, "commit.txt"},
      {{{"metrics.jsonl", "{}\n"}}, "metrics.jsonl"},
      {{{"summary.json", "{}\n"}}, "summary.json"},
      {{{"facts.json", "{}\n"}}, "facts.json"},
      {{{"trace.json", "{}\n"}}, "trace.json"},
      {{{"diverged.txt", "no\n"}}, "diverged.txt"},
      {{{"events.tfevents.0000000012", "mine"}}, "events.tfevents.0000000012"},
      {{{"config.toml/mine", ""}}, "config.toml"},
      {{{"metrics.jsonl/mine", ""}}, "metrics.jsonl"},
      {{{"checkpoints", "mine"}}, "checkpoints"},
      {{{"gradients", "mine"}}, "gradients"},
      {{{"checkpoints/step_100/manifest.json", "{}"}}, "checkpoints"},
  };
  for (const Foreign& folder : folders) {
    SCOPED_TRACE(folder.named);
    const TempDir dir;
    for (const auto& [name, content] : folder.files) dir.write(concat("run/", name), content);
    const auto before = files_in(dir.path());
    for (const Open how : {Open::create, Open::overwrite, Open::resume}) {
      const std::string error = error_of([&] { tiny_train(dir / "run", kOne, how); });
      EXPECT_EQ(error.find(dir / concat("run/", folder.named,
                                        " is there, but no run made this "
                                        "directory")),
                0u)
          << error;
      EXPECT_EQ(files_in(dir.path()), before);
    }
  }
}

TEST(RunDirectory, IsNoneWhereALinkHasANameOfARun) {
  for (const char* name : {"config.toml", "metrics.jsonl", "checkpoints", "gradients"}) {
    const TempDir dir;
    fs::create_directory(dir / "run");
    fs::create_symlink("../elsewhere", dir / concat("run/", name));
    EXPECT_NE(error_of([&] {
                tiny_train(dir / "run", kOne);
              }).find(concat("/", name, " is there, but no run made this directory")),
              std::string::npos);
    EXPECT_FALSE(fs::exists(dir / "elsewhere"));
  }
}

TEST(RunDirectory, TakesNoStepWhereNoCheckpointCanBeSaved) {
  for (const bool held : {false, true}) {
    const TempDir dir;
    if (held) tiny_train(dir / "run", kOne);
    dir.write("run/checkpoints/saving.tmp/mine", "");
    const auto before = files_in(dir.path());
    for (const Open how : {Open::create, Open::overwrite, Open::resume})
      EXPECT_EQ(error_of([&] { tiny_train(dir / "run", {}, how); }),
                dir / "run/checkpoints/saving.tmp/mine is in the way of checkpoints; move it away");
    EXPECT_EQ(files_in(dir.path()), before);
  }
}

TEST(RunDirectory, OfAnotherProgramIsNoPlaceForAnImport) {
  const TempDir dir;
  tiny_train(dir / "run", kOne);
  export_run(dir / "run", dir / "weights.safetensors", {});
  dir.write("project/checkpoints/epoch=3.ckpt", "weights");
  const auto before = files_in(dir / "project");
  for (const Open how : {Open::create, Open::overwrite}) {
    const std::string error = error_of(
        [&] { import_run(tiny_config(), dir / "weights.safetensors", dir / "project", how); });
    EXPECT_NE(error.find("no run made this directory"), std::string::npos) << error;
    EXPECT_EQ(files_in(dir / "project"), before);
  }
  import_run(tiny_config(), dir / "weights.safetensors", dir / "run", Open::overwrite);
  EXPECT_FALSE(fs::exists(dir / "run/summary.json"));
  EXPECT_FALSE(fs::exists(dir / "run/metrics.jsonl"));
  EXPECT_EQ(checkpoint_steps(dir / "run/checkpoints"), std::vector<int64_t>{0});
}

TEST(RunDirectory, MayHoldFilesOfOtherNames) {
  const TempDir dir;
  dir.write("run/notes.txt", "mine");
  dir.write("run/events.tfevents.mine", "mine");
  fs::create_directories(dir / "run/checkpoints");
  tiny_train(dir / "run", kOne);
  EXPECT_EQ(read_text(dir / "run/notes.txt"), "mine");
  EXPECT_EQ(read_text(dir / "run/events.tfevents.mine"), "mine");
}

TEST(RunDirectory, OverwritingLeavesNothingOfTheOldRunAndAllOfOthers) {
  const TempDir dir;
  tiny_train(dir / "fresh", kOne);
  tiny_train(dir / "run", {"workers=4", "record.gradients.every=1", "trace.steps=1",
                           "checkpoint.every_steps=1", "train.max_steps=3"});
  dir.write("run/diverged.txt", "of the old run\n");
  dir.write("run/.wisp-1-0.tmp", "of a killed process");
  dir.write("run/checkpoints/saving.tmp/rank_7.safetensors", "of a killed process");
  const std::vector<const char*> foreign = {
      "notes.txt",
      "events.tfevents.mine",
      "checkpoints/epoch=3.ckpt",
      "checkpoints/step_backup/rank_0.safetensors",
      "checkpoints/step_12_mine/manifest.json",
      "checkpoints/step_2/notes.txt",
      "gradients/notes.npy",
      "gradients/rank_0/readme.txt",
      "gradients/rank_mine/layer.npy",
  };
  for (const char* name : foreign) dir.write(concat("run/", name), "mine");
  tiny_train(dir / "run", kOne, Open::overwrite);
  auto left = files_in(dir / "run");
  for (const char* name : foreign) {
    EXPECT_EQ(left[name], "mine") << name;
    left.erase(name);
  }
  std::vector<std::string> names, expected;
  for (const auto& [name, content] : left) names.push_back(name);
  for (const auto& [name, content] : files_in(dir / "fresh")) expected.push_back(name);
  EXPECT_EQ(names, expected);
}

TEST(RunDirectory, NothingIsRemovedThroughALink) {
  const TempDir dir;
  tiny_train(dir / "run", {"record.gradients.every=1", "train.max_steps=1"});
  for (const char* name : {"checkpoints", "gradients", "config.toml"}) {
    fs::rename(dir / concat("run/", name), dir / concat("elsewhere_", name));
    fs::create_symlink(dir / concat("elsewhere_", name), dir / concat("run/", name));
  }
  const auto before = files_in(dir.path());
  tiny_train(dir / "run", {"train.max_steps=2"}, Open::overwrite);
  for (const auto& [name, content] : before) {
    if (name.starts_with("elsewhere_")) {
      EXPECT_TRUE(files_in(dir.path())[name] == content) << name;
    }
  }
  EXPECT_FALSE(fs::is_symlink(dir / "run/checkpoints"));
  EXPECT_FALSE(fs::is_symlink(dir / "run/config.toml"));
}

TEST(RunDirectory, IsLeftAsItWasFoundUnlessARunBegins) {
  const TempDir dir;
  { RunDirectory(dir / "new", Open::create).make(); }
  EXPECT_FALSE(fs::exists(dir / "new"));
  dir.write("old/notes.txt", "mine");
  { RunDirectory(dir / "old", Open::create).make(); }
  EXPECT_EQ(files_in(dir / "old"), (std::map<std::string, std::string>{{"notes.txt", "mine"}}));
  {
    RunDirectory begun(dir / "new", Open::create);
    begun.make();
    begun.begin();
  }
  EXPECT_TRUE(fs::exists(dir / "new/lock"));
}

TEST(RunDirectory, ARunThatBeganMeanwhileIsNotReplaced) {
  const TempDir dir;
  RunDirectory late(dir / "run", Open::create);  // looks before the other one begins
  tiny_train(dir / "run", kOne);
  const auto before = files_in(dir / "run");
  EXPECT_NE(error_of([&] { late.make(); }).find("holds a run already"), std::string::npos);
  EXPECT_EQ(files_in(dir / "run"), before);
}

TEST(RunFiles, ARunIsToldByItsVersionOrItsCheckpoint) {
  const TempDir dir;
  const auto holds = [&](const std::string& commit) {
    dir.write("run/commit.txt", commit);
    return holds_run(dir / "run");
  };
  EXPECT_TRUE(holds(program_version() + "\n"));
  EXPECT_TRUE(holds("0.12.3 (no commit known)\n"));
  for (const char* other : {"", "c0ffee\n", "0.1 (abc)\n", "v0.1.0 (abc)\n", "0.1.0 abc\n",
                            ".1.0. (abc)\n", "0.1.0 (abc) or so\n"})
    EXPECT_FALSE(holds(other)) << other;
  fs::remove(dir / "run/commit.txt");
  dir.write("run/checkpoints/step_3/manifest.json", "another program's");
  EXPECT_FALSE(holds_run(dir / "run"));
  const std::string saving = saving_path(dir / "run/checkpoints");
  prepare_directory(saving);
  publish_directory(saving, checkpoint_path(dir / "run/checkpoints", 4), {{"step", "4"}});
  EXPECT_TRUE(holds_run(dir / "run"));
  dir.write("run/config.toml", "title = \"my project\"\n");
  EXPECT_FALSE(holds_run(dir / "run"));
}

}  // namespace
}  // namespace wisp
