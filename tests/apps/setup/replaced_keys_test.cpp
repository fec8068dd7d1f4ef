#include "apps/setup/replaced_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "apps/setup/prepared.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

using Overrides = std::vector<std::string>;

/// Two files, `base` and one that extends it.
class Derived {
 public:
  explicit Derived(const std::string& base, const std::string& text = "") {
    dir_.write("base.toml", base);
    path_ = dir_.write("run.toml", "extends = 'base.toml'\n" + text);
    std::string lines;
    for (int i = 0; i < 1000; ++i) lines += "one two three\n";
    dir_.write("lines.txt", lines);
  }
  Prepared prepare(const Overrides& overrides = {}) const {
    return Prepared(Config::load(path_, overrides));
  }
  std::string error(const Overrides& overrides = {}) const {
    return error_of([&] { prepare(overrides); });
  }
  std::string lines() const { return "data.path=" + (dir_ / "lines.txt"); }
  std::string place(int line, const std::string& file = "base.toml") const {
    return dir_ / file + ":" + std::to_string(line);
  }

 private:
  TempDir dir_;
  std::string path_;
};

bool has(const Prepared& run, const std::string& key) {
  const auto& keys = run.config().keys();
  return run.config().given(key) ||
         std::any_of(keys.begin(), keys.end(), [&](const ConfigKey& k) { return k.name == key; });
}

std::string notice(const std::string& keys) {
  return "keys of components that were replaced have no effect: " + keys;
}

const std::string kLanguage =
    "[model]\nname = 'lstm_lm'\nunits = 8\ndropout = 0.5\n[data]\nname = 'text'\nwindow = 7\n";

TEST(ReplacedKeys, OfModelAndDataOfTheBaseFallAway) {
  const Derived files(kLanguage,
                      "[model]\nname = 'mlp'\nhidden = [8]\n[data]\nname = 'synthetic'\n");
  const Prepared run = files.prepare();
  EXPECT_EQ(run.notices(), std::vector<std::string>{
                               notice("data.window (" + files.place(7) + "), model.dropout (" +
                                      files.place(4) + "), model.units (" + files.place(3) + ")")});
  EXPECT_FALSE(has(run, "model.dropout"));
  EXPECT_EQ(Prepared(Config::from_text(run.config().resolved(), "again")).notices().size(), 0u);
}

TEST(ReplacedKeys, OnTheCommandLineToo) {
  const Derived files(kLanguage);
  EXPECT_TRUE(files.prepare({files.lines()}).notices().empty());
  const Prepared run = files.prepare({"model.name=mlp", "data.name=synthetic"});
  ASSERT_EQ(run.notices().size(), 1u);
  EXPECT_NE(run.notices()[0].find("model.dropout"), std::string::npos);
}

TEST(ReplacedKeys, OfAnOptimizerHaveNoEffect) {
  for (const auto& [base, kind, key, line] :
       {std::tuple("[optimizer]\nkind = 'adamw'\nbeta2 = 0.9\n", "sgd", "optimizer.beta2", 3),
        std::tuple("[optimizer]\nnesterov = true\n", "adamw", "optimizer.nesterov", 2)}) {
    const Derived files(std::string("data.name = 'synthetic'\nmodel.name = 'mlp'\n") + base);
    const Prepared run = files.prepare({std::string("optimizer.kind=") + kind});
    ASSERT_EQ(run.notices().size(), 1u);
    EXPECT_EQ(run.notices()[0],
              std::string("keys of other optimizers have no effect with optimizer.kind ") + kind +
                  ": " + key + " (" + files.place(line + 2) + ")");
    EXPECT_FALSE(has(run, key));
    EXPECT_TRUE(Prepared(Config::from_text(run.config().resolved(), "again")).notices().empty());
  }
}

/// Keys fall away for every key that selects a component, in its own section or in another.
TEST(ReplacedKeys, OfEveryKindFallAway) {
  const std::string data = "workers = 4\n[data]\nname = 'synthetic'\n";
  const std::vector<std::array<std::string, 3>> cases = {
      {"[compression]\nmethod = 'dgc'\nratio = 0.01\n", "compression.method=signsgd",
       "compression.ratio"},
      {"[compression]\nmethod = 'local_sgd'\n[local_sgd]\nperiod = 2\n", "compression.method=dgc",
       "local_sgd.period"},
      {"[compression]\nmethod = 'choco'\n[gossip]\ngraph = 'ring'\n", "compression.method=none",
       "gossip.graph"},
      {"[compression]\nmethod = 'choco'\nlevels = 3\n[gossip]\ncode = 'qsgd'\n", "gossip.code=topk",
       "compression.levels"},
      {"[compression]\nrank = 2\n[[compression.policy]]\nmethod = 'powersgd'\n",
       "compression.policy=[]", "compression.rank"}};
  for (const auto& [base, choice, key] : cases) {
    const Derived files(data + base);
    EXPECT_EQ(files.error(), "no error") << key;
    EXPECT_EQ(files.error({choice}), "no error") << key;
    const Prepared run = files.prepare({choice});
    ASSERT_EQ(run.notices().size(), 1u) << key;
    EXPECT_EQ(run.notices()[0].find(notice(key + " (")), 0u) << run.notices()[0];
    EXPECT_FALSE(has(run, key)) << key;
  }
}

TEST(ReplacedKeys, ThatTheNewComponentKnowsStay) {
  const Derived files(
      "workers = 2\ndata.name = 'synthetic'\n[compression]\nmethod = 'block_topk'\nratio = 0.25\n"
      "block_size = 8\n");
  const Prepared run = files.prepare({"compression.method=topk"});
  EXPECT_EQ(run.config().where("compression.ratio"), files.place(5));
  EXPECT_EQ(run.notices(),
            std::vector<std::string>{notice("compression.block_size (" + files.place(6) + ")")});
}

TEST(ReplacedKeys, GivenWithTheNewNameAreErrors) {
  const std::string mlp = "[data]\nname = 'synthetic'\n[model]\nname = 'mlp'\ndropout = 0.1\n";
  const Derived together(kLanguage, mlp);
  EXPECT_EQ(together.error().find(together.place(6, "run.toml") + ": unknown key 'model.dropout'"),
            0u)
      << together.error();
  const Derived plain(kLanguage);
  EXPECT_EQ(plain.error({"model.name=mlp", "data.name=synthetic", "model.dropout=0.1"})
                .find("command line: unknown key 'model.dropout'"),
            0u);
}

TEST(ReplacedKeys, ThatNobodyKnewAreErrors) {
  const Derived misspelt(kLanguage + "windo = 3\n");
  EXPECT_EQ(misspelt.error({"model.name=mlp", "data.name=synthetic"})
                .find(misspelt.place(8) + ": unknown key 'data.windo'"),
            0u);
  const Derived of_no_method("data.name = 'synthetic'\n[compression]\nratio = 0.01\n");
  EXPECT_EQ(of_no_method.error({"compression.method=signsgd"})
                .find(of_no_method.place(3) + ": compression.ratio means nothing to"),
            0u);
}

/// A base may lack keys that a run needs.
TEST(ReplacedKeys, OfABaseThatIsNotCompleteFallAway) {
  const Derived files(kLanguage + "[train]\nbatch = 3\n",
                      "workers = 2\n[train]\nbatch = 4\n[data]\nname = 'synthetic'\n"
                      "[model]\nname = 'mlp'\n");
  EXPECT_EQ(files.error(), "no error");
  const Derived unknown("data.name = 'nonesuch'\n[compression]\nmethod = 'qsgd'\nlevels = 3\n",
                        "[data]\nname = 'synthetic'\n[compression]\nmethod = 'none'\n");
  EXPECT_EQ(unknown.error(), "no error");
}

TEST(ReplacedKeys, ComeBackWithTheirComponent) {
  const Derived files(kLanguage, "[model]\nname = 'mlp'\n[data]\nname = 'synthetic'\n");
  const Prepared run = files.prepare({"model.name=lstm_lm", "data.name=text", files.lines()});
  EXPECT_TRUE(run.notices().empty());
  EXPECT_EQ(run.config().where("model.dropout"), files.place(4));
}

}  // namespace
}  // namespace wisp
