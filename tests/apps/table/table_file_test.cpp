#include "apps/table/table_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "apps/table/table_plan.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

const std::string kTables = std::string(WISP_SOURCE) + "/apps/tables";

constexpr const char* kWhole = R"(
title = "T"
source = "S, table 1"
dense = "none"
seeds = [1, 2]
[small]
config = "tiny.toml"
overrides = ["train.epochs=2"]
target = 50
[[rows]]
name = "none"
overrides = ["compression.method=none"]
published = 93.75
[[rows]]
name = "topk"
overrides = ["compression.method=topk"]
small = ["compression.ratio=0.1"]
)";

/// The error of a table whose text has `from` replaced by `to`.
std::string error_with(const std::string& from, const std::string& to) {
  const TempDir dir;
  dir.write("tiny.toml", "");
  std::string text = kWhole;
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  const std::string path = dir.write("t.toml", text.replace(at, from.size(), to));
  return error_of([&] { TableFile::read(path); });
}

TEST(TableFile, HasRowsAndScales) {
  const TempDir dir;
  dir.write("tiny.toml", "");
  const TableFile table = TableFile::read(dir.write("t.toml", kWhole));
  EXPECT_EQ(table.name, "t");
  EXPECT_EQ(table.seeds, (std::vector<int64_t>{1, 2}));
  ASSERT_EQ(table.scales.size(), 1u);
  EXPECT_EQ(table.scales[0].config, dir / "tiny.toml");
  EXPECT_EQ(table.scales[0].target, 50.0);
  EXPECT_EQ(table.dense_row().published, 93.75);
  EXPECT_FALSE(table.rows[1].published);
  EXPECT_EQ(overrides_of(table.rows[1], table.scales[0]),
            (std::vector<std::string>{"train.epochs=2", "compression.method=topk",
                                      "compression.ratio=0.1"}));
}

TEST(TableFile, RefusesWhatMakesNoSense) {
  EXPECT_NE(error_with("seeds = [1, 2]", "seed = [1, 2]").find("did you mean 'seeds'?"),
            std::string::npos);
  EXPECT_NE(error_with("target = 50", "aim = 50").find("unknown key 'small.aim'"),
            std::string::npos);
  EXPECT_NE(error_with("dense = \"none\"", "dense = \"nil\"")
                .find("no row has the name 'nil', expected none, topk"),
            std::string::npos);
  EXPECT_NE(error_with("\"topk\"", "\"none\"").find("two rows have the name none"),
            std::string::npos);
  EXPECT_NE(error_with("\"topk\"", "\"../topk\"").find("'../topk' names directories"),
            std::string::npos);
  EXPECT_NE(error_with("\"topk\"", '"' + std::string(201, 'x') + '"')
                .find("the row's name has 201 characters, which is too long"),
            std::string::npos);
  EXPECT_NE(error_with("tiny.toml", "huge.toml").find("there is no config file"),
            std::string::npos);
  EXPECT_NE(error_with("[small]", "[large]").find("unknown key 'large.config'"), std::string::npos);
  EXPECT_NE(error_with("seeds = [1, 2]", "seeds = [1, 1]").find("the seed 1 is given twice"),
            std::string::npos);
  EXPECT_NE(error_with("seeds = [1, 2]", "seeds = []").find("a table needs seeds"),
            std::string::npos);
}

TEST(TableFile, NamesTheScalesThereAre) {
  const TempDir dir;
  dir.write("tiny.toml", "");
  const TableFile table = TableFile::read(dir.write("t.toml", kWhole));
  EXPECT_EQ(error_of([&] { table.scale("paper"); }),
            "table t: there is no scale 'paper', expected small");
}

/// Plans of rows whose texts and folders of photos are tiny. A plan reads a text's words and the
/// photos' classes.
class Plans {
 public:
  Plans() {
    for (const char* part : {"train", "valid", "test"}) {
      dir_.write(concat("ptb.", part, ".txt"), kText);
      dir_.write(concat("wiki.", part, ".tokens"), kText);
    }
    for (int photo = 0; photo < 40; ++photo)
      dir_.write(concat("photos/", photo % 2 ? "ants/" : "bees/", photo, ".jpg"), "");
  }
  std::vector<RowPlan> of(const TableFile& table, const TableScale& scale) const {
    return plan_rows(table, scale, {}, [this](const std::string& path, auto overrides) {
      if (path.find("ptb") != path.npos || path.find("wikitext") != path.npos)
        overrides.push_back("data.path=" + dir_.path());
      if (path.find("imagenet") != path.npos || path.find("photos") != path.npos)
        overrides.push_back("data.path=" + (dir_ / "photos"));
      return Config::load(path, overrides);
    });
  }

 private:
  static constexpr const char* kText = "a word <unk> of some\n";
  TempDir dir_;
};

TEST(ShippedTables, EachRowIsAConfiguration) {
  const Plans plans;
  size_t tables = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kTables)) {
    const TableFile table = TableFile::read(entry.path().string());
    ++tables;
    for (const TableScale& scale : table.scales) {
      SCOPED_TRACE(concat(table.name, " ", scale.name));
      EXPECT_EQ(plans.of(table, scale).size(), table.rows.size());
    }
  }
  EXPECT_GT(tables, 8u);
}

/// Workers, batch and steps of all rows of a table at the paper's scale.
struct Recipe {
  int workers;
  int64_t batch, steps;
};

// Steps: PowerSGD on CIFAR-10 300 epochs of 24; ACP-SGD 300 of 390; DGC 164 epochs of floor(50,000
// / 128); GRACE 328 of 24; CHOCO 300 of 48; PTB 40 of 1,328 windows of 35 in 20 columns; PowerSGD
// 90 of 68 windows of 30 in 1,024 columns; AN4 80 of 118; ImageNet 90 of floor(1,281,167 / 256) or
// of floor(1,281,167 / 128).
const std::map<std::string, Recipe> kRecipes = {{"dgc-cifar10", {4, 128, 63'960}},
                                                {"grace-cifar10", {8, 2048, 7'872}},
                                                {"choco-cifar10", {8, 1024, 14'400}},
                                                {"qsgd-cifar10", {8, 128, 63'960}},
                                                {"dgc-ptb", {4, 20, 53'120}},
                                                {"powersgd-wikitext2", {16, 1024, 6'120}},
                                                {"dgc-an4", {4, 8, 9'440}},
                                                {"powersgd-cifar10", {16, 2048, 7'200}},
                                                {"acpsgd-cifar10", {4, 128, 117'000}},
                                                {"acpsgd-cifar10-vgg16", {4, 128, 117'000}},
                                                {"dgc-resnet50", {4, 256, 450'360}},
                                                {"dgc-alexnet", {4, 128, 900'810}}};

TEST(ShippedTables, HaveThePapersStepsWorkersAndBatch) {
  const Plans plans;
  size_t found = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kTables)) {
    const TableFile table = TableFile::read(entry.path().string());
    for (const TableScale& scale : table.scales) {
      if (scale.name != "paper") continue;
      ++found;
      const Recipe& recipe = kRecipes.at(table.name);
      for (const RowPlan& row : plans.of(table, scale)) {
        EXPECT_EQ(row.workers, recipe.workers) << table.name;
        EXPECT_EQ(row.batch, recipe.batch) << table.name;
        EXPECT_EQ(row.steps, recipe.steps) << table.name;
      }
    }
  }
  EXPECT_EQ(found, kRecipes.size());
}

/// Published scores, copied from the papers a second time.
TEST(ShippedTables, HaveThePapersScores) {
  const std::map<std::string, std::map<std::string, double>> published = {
      {"dgc-cifar10", {{"none", 93.75}, {"topk", 92.75}, {"dgc", 93.87}}},
      {"dgc-ptb", {{"none", 72.30}, {"dgc", 72.24}}},
      {"dgc-resnet50", {{"none", 75.96}, {"dgc", 76.15}}},
      {"dgc-alexnet", {{"none", 58.17}, {"terngrad", 57.28}, {"dgc", 58.20}}},
      {"grace-cifar10",
       {{"none", 90.97},
        {"topk", 90.97},
        {"dgc", 90.69},
        {"ef_signsgd", 91.14},
        {"onebit", 91.46},
        {"qsgd", 90.63},
        {"random_k", 88.25}}},
      {"choco-cifar10", {{"none", 92.64}, {"choco-sign", 92.46}, {"choco-topk", 91.73}}}};
  for (const auto& [name, scores] : published) {
    const TableFile table = TableFile::read(kTables + "/" + name + ".toml");
    std::map<std::string, double> have;
    for (const TableRow& row : table.rows) have[row.name] = row.published.value_or(0.0);
    for (const auto& [row, score] : scores) EXPECT_EQ(have[row], score) << name << " " << row;
  }
}

}  // namespace
}  // namespace wisp
