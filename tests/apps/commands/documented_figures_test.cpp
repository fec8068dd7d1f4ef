// Tests of the bytes in README's tables against those that such runs send.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "apps/report/report.h"
#include "apps/table/table_file.h"
#include "apps/train/trainer.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  std::istringstream stream(text);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// The words of a variable NAME="…" in scripts/quickstart.sh.
Words of_script(const std::string& name) {
  const std::string text = read_text(WISP_SOURCE "/scripts/quickstart.sh");
  const std::string begin = "\n" + name + "=\"";
  const size_t at = text.find(begin);
  if (at == text.npos) return {};
  const size_t first = at + begin.size();
  return words_of(text.substr(first, text.find('"', first) - first));
}

/// The bytes (raw, encoded, sent, received) and the reduction of each run, in a table that `wisp
/// report` printed.
std::map<std::string, std::vector<double>> bytes_of(const std::string& table) {
  const std::map<std::string, double> units = {{"B", 1.0}, {"kB", 1e3}, {"MB", 1e6}};
  std::istringstream lines(table);
  std::map<std::string, std::vector<double>> rows;
  for (std::string line; std::getline(lines, line) && line != "```";) {
    const Words words = words_of(line);  // NAME 44.28 % 918 1.08 MB … 1.0x …
    if (words.size() < 13 || words[2] != "%") continue;
    std::vector<double>& row = rows[words[0]];
    for (size_t i = 4; i < 12; i += 2) row.push_back(std::stod(words[i]) * units.at(words[i + 1]));
    row.push_back(std::stod(words[12]));
  }
  return rows;
}

/// The figures of a run on small drawn images, with 4 instead of 128 in a step. The bytes of a step
/// depend on the layers and the buckets, not on the images or the number of steps.
std::vector<double> measured(const TempDir& dir, const std::string& name, Overrides overrides) {
  for (const char* less :
       {"data.name=synthetic", "data.side=8", "train.batch=4", "train.max_steps=20",
        "data.train_count=1560", "data.test_count=4", "threads=1", "workers=4"})
    overrides.emplace_back(less);
  const Config config = Config::load(WISP_SOURCE "/apps/configs/cifar10_resnet20.toml", overrides);
  train(config, {dir / name, RunDirectory::Open::create, true});
  return bytes_of(report_table(std::vector{RunRecord::read(dir / name)})).at(name);
}

TEST(DocumentedFigures, ReadmesBytesAreThoseOfARun) {
  const TempDir dir;
  const std::string page = read_text(WISP_SOURCE "/README.md");
  const auto rows = bytes_of(page.substr(page.find("4 workers, 120 steps each")));
  for (const auto& [name, method] : std::map<std::string, Words>{
           {"dense", {"compression.method=none"}}, {"qsgd", of_script("qsgd")}}) {
    ASSERT_TRUE(rows.contains(name)) << name;
    EXPECT_EQ(rows.at(name + "-slow-link"), rows.at(name)) << "a link changes no byte";
    EXPECT_EQ(measured(dir, name, of_script("short") + method), rows.at(name)) << name;
  }
}

/// Rows such as "| `powersgd`, rank 4 | 85.8 % | -0.3 ± 0.7 | 162.1 kB | 10 times |".
TEST(DocumentedFigures, ReadmesMethodsSendWhatRunsSend) {
  const TempDir dir;
  const std::string page = read_text(WISP_SOURCE "/README.md");
  const TableFile table = TableFile::read(WISP_SOURCE "/apps/tables/acpsgd-cifar10.toml");
  // the rows ran on a GPU, which has larger buckets: fewer messages with a header
  const Overrides device = {"compression.bucket_bytes=1048576", "compression.encode_bytes=1048576"};
  for (const TableRow& row : table.rows) {
    const std::string name = row.name == "none" ? "dense" : "`" + row.name + "`";
    const std::regex line("\n\\| " + name +
                          "[^|]*\\|[^|]*\\|[^|]*\\| ([0-9.]+) (MB|kB) \\|(?: ([0-9]+) times)?");
    std::smatch found;
    std::regex_search(page, found, line);
    ASSERT_FALSE(found.empty()) << name;
    const std::vector<double> bytes = measured(dir, row.name, row.overrides + device);
    EXPECT_EQ(bytes[2], std::stod(found[1]) * (found[2] == "MB" ? 1e6 : 1e3)) << name;
    if (row.name != "none") {
      EXPECT_EQ(std::round(bytes[4]), std::stod(found[3])) << name;
    }
  }
}

/// The first lines of a configuration, without the marks of a comment, as one line.
std::string comment_of(const std::filesystem::path& file) {
  std::istringstream lines(read_text(file.string()));
  std::string comment;
  for (std::string line; std::getline(lines, line) && line.starts_with("# ");)
    comment += line.substr(1);
  return comment;
}

/// The parameters of a configuration's model, with the data that its comment is about.
int64_t parameters_of(const std::filesystem::path& file) {
  Config config = Config::load(file.string(), {});
  std::string model, data;
  config.bind("model.name", model, "");
  config.bind("data.name", data, "");
  const std::map<std::string, int64_t> classes = {
      {"ptb", 10'000}, {"wikitext2", 33'278}, {"an4", 29}, {"librispeech", 29}};
  Facts facts{.inputs = {{.name = "input", .sample = {64, 64, 3}}}, .classes = 1000};
  if (classes.contains(data)) {
    facts.classes = classes.at(data);
    facts.names = {"_", "a", " "};
    const Feed text{.name = "tokens", .sample = {0}, .dtype = DType::i32};
    const Feed speech{.name = "spectrogram", .sample = {0, 161}, .padded = true};
    facts.inputs = {facts.classes > 29 ? text : speech};
  }
  int64_t count = 0;
  for (const Parameter* parameter : make_model(model, config, facts)->parameters())
    count += parameter->shape.numel();
  return count;
}

/// Comments such as "5,334,068 parameters" and "127,948,528 parameters, 488 MiB".
TEST(DocumentedFigures, ConfigurationsHaveTheParametersThatTheirCommentsName) {
  const std::regex figure("([0-9,]*[0-9]) (?:parameters|gradients)(?:, ([0-9]+) MiB)?");
  int figures = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WISP_SOURCE "/apps/configs")) {
    const std::string comment = comment_of(entry.path());
    std::smatch found;
    if (!std::regex_search(comment, found, figure)) continue;
    std::string number = found[1];
    std::erase(number, ',');
    const int64_t count = parameters_of(entry.path());
    EXPECT_EQ(std::to_string(count), number) << entry.path();
    if (found[2].matched) {
      EXPECT_EQ(std::llround(static_cast<double>(4 * count) / (1 << 20)), std::stoll(found[2]))
          << entry.path();
    }
    ++figures;
  }
  EXPECT_EQ(figures, 8);
}

/// "each of 2 workers sends gradients of 102.2 MB in 0.37 MB, of which 0.22 MB are vectors"
TEST(DocumentedFigures, ConfigurationsSendWhatTheirCommentsSay) {
  const std::string file = WISP_SOURCE "/apps/configs/imagenet_resnet50_dgc.toml";
  const ExchangePlan plan =
      Prepared(
          Config::load(file, Overrides{"data.name=synthetic", "model.classes=1000", "workers=2"}))
          .exchange();
  double vectors = 0.0;
  for (const LayerPlan& layer : plan.layers)
    if (layer.method.empty()) vectors += layer.bytes_sent;
  const PhasePlan& phase = plan.phases.back();
  const std::string said = fmt::format(
      "each of 2 workers sends gradients of {:.1f} MB in {:.2f} MB, of which {:.2f} MB are vectors",
      phase.bytes_dense / 1e6, phase.bytes_sent / 1e6, vectors / 1e6);
  EXPECT_NE(comment_of(file).find(said), std::string::npos) << said;
}

}  // namespace
}  // namespace wisp
