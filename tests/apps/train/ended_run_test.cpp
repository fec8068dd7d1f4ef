// Tests of what a run directory says once its run has ended, goes on, was killed, or diverged.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/report/page/page.h"
#include "apps/report/report.h"
#include "apps/run/run_record.h"
#include "apps/sweep/run_queue.h"
#include "tests/support/error_of.h"
#include "tests/support/files_in.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;
using Open = RunDirectory::Open;

const Overrides kEnded = {"train.epochs=2"};  // 8 steps
const Overrides kMore = {"train.epochs=4", "optimizer.lr=0.05", "checkpoint.every_epochs=0"};

/// Trains until the stop question number `last`, which fails: as if killed, nothing is saved.
std::string killed_at(
    int last, const std::string& out, const Overrides& overrides, Open how,
    const std::function<void()>& before = [] {}) {
  int asked = 0;
  return error_of([&] {
    train(tiny_config(overrides), {out, how, true, [&] {
                                     if (++asked < last) return false;
                                     before();
                                     throw Error("killed");
                                   }});
  });
}

std::string said_by(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  const std::string error = error_of(work);
  return testing::internal::GetCapturedStderr() + (error == "no error" ? "" : error);
}

TEST(EndedRun, ResumedWithOtherKeysChangesNoFile) {
  const TempDir dir;
  const Overrides own = kEnded + Overrides{"record.gradients.every=1", "trace.steps=1"};
  tiny_train(dir / "run", own);
  const auto before = files_in(dir / "run");
  for (const Overrides& other :
       {own, kEnded + Overrides{"optimizer.lr=9", "seed=7"},
        kEnded + Overrides{"train.tensorboard=false", "train.log_every=3"},
        kEnded + Overrides{"record.gradients.every=2", "trace.steps=0"},
        Overrides{"train.epochs=1"}, kEnded + Overrides{"train.max_steps=3"}}) {
    const std::string said =
        said_by([&] { EXPECT_EQ(tiny_train(dir / "run", other, Open::resume).steps, 8); });
    EXPECT_TRUE(files_in(dir / "run") == before) << said;
    if (other == own) {
      EXPECT_EQ(said, "");
      continue;
    }
    EXPECT_NE(said.find("the run has ended after step 8: nothing is left to train, and its files "
                        "stay as they are; these changes were not made: "),
              std::string::npos)
        << said;
  }
}

TEST(EndedRun, NamesTheKeysThatItDoesNotTake) {
  const TempDir dir;
  tiny_train(dir / "run", kEnded);
  const std::string said = said_by([&] {
    tiny_train(dir / "run", kEnded + Overrides{"optimizer.lr=9", "seed=7"}, Open::resume);
  });
  EXPECT_NE(said.find("seed is 7, was 1"), std::string::npos) << said;
  EXPECT_NE(said.find("optimizer.lr is 9.0, was 0.1"), std::string::npos) << said;
}

TEST(EndedRun, WithoutItsSummaryTakesNoOtherKeys) {
  const TempDir dir;
  const double accuracy = tiny_train(dir / "run", kEnded).score("test_accuracy");
  fs::remove(dir / "run/summary.json");
  const auto before = files_in(dir / "run");
  for (const Overrides& other :
       {kEnded + Overrides{"data.test_count=30"}, Overrides{"train.epochs=1"}}) {
    const std::string error = error_of([&] { tiny_train(dir / "run", other, Open::resume); });
    EXPECT_NE(error.find("nothing is left to train, but the run was ended before it wrote its "
                         "summary.json"),
              std::string::npos)
        << error;
    EXPECT_TRUE(files_in(dir / "run") == before);
  }
  EXPECT_EQ(tiny_train(dir / "run", kEnded, Open::resume).score("test_accuracy"), accuracy);
  EXPECT_EQ(Summary::from_json(dir / "run/summary.json").steps, 8);
}

TEST(EndedRun, HasNoSummaryFromItsNextStepOn) {
  const TempDir dir;
  tiny_train(dir / "run", kEnded);
  const auto before = files_in(dir / "run");
  bool looked = false;
  killed_at(1, dir / "run", kMore, Open::resume);
  EXPECT_TRUE(files_in(dir / "run") == before) << "no step was made";
  killed_at(3, dir / "run", kMore, Open::resume, [&] {
    looked = true;
    EXPECT_FALSE(fs::exists(dir / "run/summary.json"));
  });
  EXPECT_TRUE(looked);
  EXPECT_FALSE(fs::exists(dir / "run/summary.json"));
  EXPECT_FALSE(has_ended(dir / "run"));
  EXPECT_FALSE(RunRecord::read(dir / "run").summary);
  // it has no checkpoint of the new values, so it is still the run that it was
  EXPECT_EQ(read_text(dir / "run/config.toml"), before.at("config.toml"));
  EXPECT_EQ(read_text(dir / "run/facts.json"), before.at("facts.json"));
  tiny_train(dir / "run", kEnded, Open::resume);
  EXPECT_EQ(Summary::from_json(dir / "run/summary.json").steps, 8);
}

TEST(EndedRun, HasTheNewConfigurationWithItsNextCheckpoint) {
  const TempDir dir;
  tiny_train(dir / "run", kEnded);
  const std::string old = read_text(dir / "run/config.toml");
  int asked = 0;
  EXPECT_FALSE(
      train(tiny_config(kMore), {dir / "run", Open::resume, true, [&] { return ++asked > 2; }}));
  EXPECT_EQ(checkpoint_steps(dir / "run/checkpoints").back(), 11);
  EXPECT_FALSE(fs::exists(dir / "run/summary.json"));
  EXPECT_NE(read_text(dir / "run/config.toml"), old);
  EXPECT_EQ(tiny_train(dir / "run", kMore, Open::resume).steps, 16);
  EXPECT_TRUE(has_ended(dir / "run"));
}

TEST(EndedRun, ASummaryOfOtherStepsOrAnotherConfigurationIsNotIts) {
  const TempDir dir;
  tiny_train(dir / "run", kEnded);
  const std::string summary = read_text(dir / "run/summary.json");
  const std::string config = read_text(dir / "run/config.toml");
  const auto with = [](std::string text, const std::string& then, const std::string& now) {
    EXPECT_NE(text.find(then), std::string::npos) << then;
    return text.replace(text.find(then), then.size(), now);
  };
  EXPECT_TRUE(summary_of(dir / "run"));
  dir.write("run/summary.json", with(summary, "\"steps\": 8", "\"steps\": 4"));
  EXPECT_FALSE(summary_of(dir / "run"));
  EXPECT_FALSE(has_ended(dir / "run"));
  dir.write("run/summary.json", summary);
  dir.write("run/config.toml", with(config, "\nseed = 1\n", "\nseed = 2\n"));
  EXPECT_FALSE(summary_of(dir / "run"));
  dir.write("run/config.toml", with(config, "threads = 1\n", "threads = 2\n"));
  EXPECT_TRUE(summary_of(dir / "run")) << "a machine's own key";
  dir.write("run/config.toml", config);
  fs::remove_all(dir / "run/checkpoints");
  EXPECT_TRUE(summary_of(dir / "run")) << "a run whose checkpoints were removed to save room";
}

TEST(RequeuedRun, OneCommandStartsItGoesOnAndEndsIt) {
  const TempDir dir;
  const Overrides keys = {"workers=2", "record.gradients.every=2"};
  tiny_train(dir / "whole", keys);
  const std::string out = dir / "run";
  const auto requeue = [&](int last) {
    return said_by([&] {
      int asked = 0;
      train(tiny_config(keys), {out, Open::resume, true, [&] {
                                  WISP_CHECK(++asked < last, "killed");
                                  return false;
                                }});
    });
  };
  std::string said = requeue(1);
  EXPECT_NE(said.find(out + " holds no run yet; a new one starts"), std::string::npos) << said;
  EXPECT_FALSE(fs::exists(out)) << "no step was made";
  said = requeue(5);  // before the first checkpoint
  EXPECT_NE(said.find("holds no run yet"), std::string::npos) << said;
  EXPECT_TRUE(checkpoint_steps(out + "/checkpoints").empty());
  EXPECT_NE(error_of([&] { tiny_train(out, keys); }).find("go on with --resume"),
            std::string::npos);
  said = requeue(17);  // after the first checkpoint
  EXPECT_NE(said.find(out + " holds a run without a checkpoint; it starts from its beginning"),
            std::string::npos)
      << said;
  EXPECT_FALSE(checkpoint_steps(out + "/checkpoints").empty());
  said = requeue(1 << 20);
  EXPECT_EQ(said, "");
  EXPECT_TRUE(checkpoint_content(out, 16) == checkpoint_content(dir / "whole", 16));
  for (const auto& [name, content] : files_in(dir / "whole/gradients"))
    EXPECT_TRUE(files_in(out + "/gradients")[name] == content) << name;
  for (const auto& [name, content] : files_in(dir / "whole"))
    EXPECT_TRUE(fs::exists(out + "/" + name)) << name;
}

TEST(RequeuedRun, StartsWithChangesThatItNames) {
  const TempDir dir;
  killed_at(3, dir / "run", {}, Open::create);
  EXPECT_TRUE(fs::exists(dir / "run/config.toml"));
  const std::string said = said_by([&] {
    tiny_train(dir / "run", {"seed=2", "train.epochs=1"}, Open::resume);
  });
  EXPECT_NE(said.find("it starts with changes: seed is 2, was 1; train.epochs is 1, was 4"),
            std::string::npos)
      << said;
  tiny_train(dir / "fresh", {"seed=2", "train.epochs=1"});
  EXPECT_TRUE(checkpoint_content(dir / "run", 4) == checkpoint_content(dir / "fresh", 4));
}

TEST(FailedStart, LeavesTheDirectoryAsItWas) {
  const TempDir dir;
  tiny_train(dir / "run", kEnded);
  const auto before = files_in(dir.path());
  EXPECT_NE(killed_at(1, dir / "new", {}, Open::create).find("killed"), std::string::npos);
  EXPECT_NE(killed_at(1, dir / "run", {}, Open::overwrite).find("killed"), std::string::npos);
  EXPECT_NE(killed_at(1, dir / "run", kMore, Open::resume).find("killed"), std::string::npos);
  EXPECT_NE(error_of([&] { tiny_train(dir / "run", {"model.hidden=[25]"}, Open::resume); }),
            "no error");
  EXPECT_NE(error_of([&] { tiny_train(dir / "run", {"data.test_count=0"}, Open::overwrite); }),
            "no error");
  EXPECT_TRUE(files_in(dir.path()) == before);
}

const Overrides kWild = {"optimizer.lr=1e30", "train.epochs=1", "train.nonfinite_max=1000"};

TEST(DivergedRun, IsMarkedWhereverItsFiguresStand) {
  const TempDir dir;
  tiny_train(dir / "fine", {"train.epochs=1"});
  Summary summary;
  const std::string said = said_by([&] { summary = tiny_train(dir / "wild", kWild); });
  EXPECT_NE(said.find("wisp: this run has diverged: the loss of the test set is not finite"),
            std::string::npos)
      << said;
  EXPECT_EQ(summary.diverged, "the loss of the test set is not finite");
  EXPECT_TRUE(std::isnan(summary.score_or_nan("test_accuracy")));
  const auto json = nlohmann::json::parse(read_text(dir / "wild/summary.json"));
  EXPECT_TRUE(json.at("test_accuracy").is_null());
  EXPECT_EQ(json.at("diverged"), "the loss of the test set is not finite");
  EXPECT_FALSE(nlohmann::json::parse(read_text(dir / "fine/summary.json")).contains("diverged"));

  const std::vector<RunRecord> runs = {RunRecord::read(dir / "fine"),
                                       RunRecord::read(dir / "wild")};
  EXPECT_EQ(runs[0].diverged, "");
  EXPECT_EQ(runs[1].diverged, summary.diverged);
  const std::string table = report_table(runs);
  EXPECT_NE(table.find("\nwild  diverged  "), std::string::npos) << table;
  EXPECT_NE(table.find("\nwild  diverged: the loss of the test set is not finite\n"),
            std::string::npos)
      << table;
  EXPECT_NE(report_page(runs).find("<td>diverged</td>"), std::string::npos);
}

TEST(DivergedRun, WhoseLastStepsWereSkippedIsMarked) {
  const TempDir dir;
  // two steps make the weights so large that losses overflow, and one is left
  const Summary summary = tiny_train(dir / "run", kWild + Overrides{"train.max_steps=3"});
  EXPECT_NE(summary.diverged, "");
  EXPECT_TRUE(has_ended(dir / "run")) << "nothing is left to do";
}

TEST(DivergedRun, ThatEndedByItSaysSoFromItsFirstStepOn) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=1"});
  const Overrides wild = kWild + Overrides{"train.nonfinite_max=1"};
  const std::string error = error_of([&] { tiny_train(dir / "run", wild, Open::resume); });
  EXPECT_NE(error.find("the loss was not finite in 1 steps in a row"), std::string::npos) << error;
  const RunRecord run = RunRecord::read(dir / "run");
  EXPECT_FALSE(run.summary);
  EXPECT_NE(run.diverged.find("the loss was not finite in 1 steps in a row"), std::string::npos);
  EXPECT_NE(read_text(dir / "run/config.toml").find("lr = 1e"), std::string::npos)
      << "the configuration is that which diverged";
  EXPECT_NE(report_table(std::vector{run}).find("\nrun  diverged  "), std::string::npos);
  EXPECT_NE(report_page({run}).find("<td>diverged</td>"), std::string::npos);
  tiny_train(dir / "run", {"train.epochs=1"}, Open::overwrite);
  EXPECT_FALSE(fs::exists(dir / "run/diverged.txt"));
}

}  // namespace
}  // namespace wisp
