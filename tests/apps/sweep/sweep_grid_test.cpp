#include "apps/sweep/sweep_grid.h"

#include <gtest/gtest.h>

#include <set>

#include "core/io/checksum.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

std::vector<SweepRun> tiny_sweep(const std::vector<std::string>& texts) {
  std::vector<SweepAxis> axes;
  for (const std::string& text : texts) axes.push_back(parse_axis(text));
  return sweep_runs(axes, [](const std::vector<std::string>& o) { return tiny_config(o); });
}

std::vector<std::string> names_of(const std::vector<SweepRun>& runs) {
  std::vector<std::string> names;
  for (const SweepRun& run : runs) names.push_back(run.name);
  return names;
}

using Texts = std::vector<std::string>;

TEST(SweepAxis, SplitsAtCommasOutsideBracketsAndQuotes) {
  EXPECT_EQ(parse_axis("a.b=0.1,0.01").key, "a.b");
  EXPECT_EQ(parse_axis("a.b=0.1,0.01").values, (Texts{"0.1", "0.01"}));
  EXPECT_EQ(parse_axis("a=[1, 2],[3],[[4,5],6]").values, (Texts{"[1, 2]", "[3]", "[[4,5],6]"}));
  EXPECT_EQ(parse_axis(R"(a="x,\",y",'p,q')").values, (Texts{R"("x,\",y")", "'p,q'"}));
  EXPECT_EQ(parse_axis("a=x=y").values, (Texts{"x=y"}));
}

TEST(SweepAxis, RefusesWhatIsNoList) {
  EXPECT_EQ(error_of([] { parse_axis("seed"); }),
            "sweep: 'seed' is no list of values, expected a.b=value,value");
  EXPECT_EQ(error_of([] { parse_axis("seed=1,,2"); }), "sweep: seed=1,,2 has an empty value");
  EXPECT_EQ(error_of([] { parse_axis("a=[1,2"); }), "sweep: a=[1,2 leaves a bracket or quote open");
}

TEST(Sweep, IsTheProductNamedByWhatVaries) {
  const auto runs = tiny_sweep({"workers=1,2", "train.epochs=1", "seed=1,2"});
  EXPECT_EQ(names_of(runs), (Texts{"workers-1_seed-1", "workers-1_seed-2", "workers-2_seed-1",
                                   "workers-2_seed-2"}));
  EXPECT_EQ(runs[1].overrides, (Texts{"workers=1", "train.epochs=1", "seed=2"}));
  EXPECT_EQ(runs[1].config,
            Prepared(tiny_config({"train.epochs=1", "seed=2"})).config().resolved());
}

TEST(Sweep, LeavesOutAKeyThatACombinationDoesNotHave) {
  const auto runs =
      tiny_sweep({"compression.method=none,topk", "compression.ratio=0.1,0.01", "seed=1"});
  EXPECT_EQ(names_of(runs),
            (Texts{"method-none", "method-topk_ratio-0.1", "method-topk_ratio-0.01"}));
  EXPECT_FALSE(runs[0].values[1]);
  EXPECT_EQ(runs[0].overrides, (Texts{"compression.method=none", "seed=1"}));
  EXPECT_EQ(runs[2].values[1], "0.01");
}

TEST(Sweep, RefusesAKeyThatNoCombinationHas) {
  EXPECT_NE(error_of([] {
              tiny_sweep({"compression.method=none,topk", "compression.ration=0.1"});
            }).find("unknown key 'compression.ration'; did you mean 'compression.ratio'?"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              tiny_sweep({"compression.ratio=0.1,0.2"});
            }).find("compression.ratio means nothing to compression.method"),
            std::string::npos)
      << "without a sparse method nothing has it";
  EXPECT_EQ(error_of([] { tiny_sweep({"seed=1", "seed=2"}); }), "sweep: seed is given twice");
}

/// The search for keys without effect once took out such a key again and again.
TEST(Sweep, RefusesAnUnknownKeyOfTheConfigurationItself) {
  const LoadSwept load = [](std::vector<std::string> overrides) {
    overrides.push_back("compression.ration=0.2");
    return tiny_config(overrides);
  };
  const SweepAxis axis = parse_axis("compression.ration=0.1");
  EXPECT_NE(error_of([&] { sweep_runs({&axis, 1}, load); }).find("unknown key"), std::string::npos);
}

/// Keys of a schedule or an optimizer that a combination does not choose.
TEST(Sweep, LeavesOutAKeyWithoutEffect) {
  const auto runs = tiny_sweep({"schedule.kind=cosine,step", "schedule.factor=0.1,0.5"});
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].name, "kind-cosine");
  EXPECT_FALSE(runs[0].values[1]);
  EXPECT_EQ(runs[2].name, "kind-step_factor-0.5");
  EXPECT_EQ(error_of([] { tiny_sweep({"schedule.factor=0.1,0.5"}); }),
            "sweep: schedule.factor has no effect in any of these runs");
  EXPECT_EQ(error_of([] { tiny_sweep({"optimizer.beta1=0.8,0.9"}); }),
            "sweep: optimizer.beta1 has no effect in any of these runs");
}

TEST(Sweep, ChecksEveryConfigurationBeforehand) {
  EXPECT_NE(error_of([] {
              tiny_sweep({"train.batch=32,33", "workers=2"});
            }).find("train.batch is 33, which 2 workers"),
            std::string::npos);
}

/// 255 bytes are the most of a file's name; a log's name is ".log" longer than the run's.
TEST(Sweep, NamesAreShortEnoughAndDifferent) {
  std::string list = "[1";
  for (int i = 2; i < 200; ++i) list += concat(",", i);
  const auto runs = tiny_sweep(
      {"schedule.kind=multi_step",
       "schedule.milestones=[1]," + list + "]," + list + ",200]," + list + ",201]", "seed=1,2"});
  std::set<std::string> names;
  for (const std::string& name : names_of(runs)) {
    EXPECT_LE(name.size(), 251u);
    EXPECT_EQ(name.find_first_of("/\n ,[]"), name.npos) << name;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), 8u);
  EXPECT_TRUE(names.contains("milestones-_1_-" + checksum_text(crc32c("[1]", 3)) + "_seed-1"));
}

TEST(Sweep, NamesThatFitStayAsTheyAre) {
  // "init-", two signs for the quotes and a checksum of 9 characters take 16 of 251
  for (const size_t length : {235u, 236u}) {
    const std::string file(length, 'x');
    const auto runs = tiny_sweep({"model.init=\"" + file + "\",\"y\""});
    const bool whole = runs[0].name.find("_" + file + "_-") != std::string::npos;
    EXPECT_EQ(whole, length == 235u) << runs[0].name;
    EXPECT_EQ(runs[0].name.size(), 251u);
  }
}

TEST(Sweep, NamesAreSafeAndDifferent) {
  const auto runs = tiny_sweep({"data.train_count=128", R"(schedule.kind="cosine","constant")"});
  ASSERT_EQ(runs.size(), 2u);
  for (const SweepRun& run : runs)
    EXPECT_EQ(run.name.find_first_of("\"/ "), std::string::npos) << run.name;
  EXPECT_NE(runs[0].name, runs[1].name);
}

}  // namespace
}  // namespace wisp
