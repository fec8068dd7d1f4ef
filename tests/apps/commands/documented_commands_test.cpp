// Tests that run every command line of README, docs and the program's help that starts the program,
// as it is written there.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/fake_cifar.h"
#include "tests/support/sound_files.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

struct CommandLine {
  std::string where;  // page, with the line number if in a block
  std::string text;
};

// ---------------------------------------------------------------- Documented command lines

const std::regex kStartsProgram("(?:(?:mpirun|srun) (?:\\S+ )*)?(?:build/release/)?wisp \\S.*");
const std::regex kNamesOptionsOnly("wisp [a-z]+(?: [a-z]+)?((?: --[a-z-]+)*)");

std::string replaced(const std::string& text, const std::string& pattern, const std::string& with) {
  return std::regex_replace(text, std::regex(pattern), with);
}

/// A line without and with its optional part, as in "wisp methods [dgc]".
std::vector<std::string> forms(const std::string& text) {
  const std::string optional = " \\[([^\\]]+)\\](?= |$)";
  const std::string without = replaced(text, optional, ""), with = replaced(text, optional, " $1");
  return without == with ? std::vector{text} : std::vector{without, with};
}

struct Page {
  std::vector<CommandLine> block_lines;  // lines of fenced blocks that start the program
  std::vector<CommandLine> in_text;      // code spans `wisp …` in prose
};

Page read_page(const std::string& name, const std::string& text) {
  Page page;
  std::istringstream lines(text);
  std::string prose, open;  // open: start of a line that ends with a backslash
  bool in_block = false;
  int number = 0, begin = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("```")) {
      in_block = !in_block;
    } else if (in_block) {
      if (open.empty()) begin = number;
      open += line;
      if (open.ends_with("\\")) {
        open.pop_back();
        continue;
      }
      const std::string command = replaced(std::exchange(open, ""), "\\s+#.*$|\\s+$", "");
      if (std::regex_match(command, kStartsProgram))
        page.block_lines.push_back({concat(name, ":", begin), replaced(command, " +", " ")});
    } else {
      prose += line.empty() ? "\n" : line + " ";  // a span may continue in the next line
    }
  }
  const std::regex span("`([^`\n]+)`");
  for (std::sregex_iterator it(prose.begin(), prose.end(), span), end; it != end; ++it) {
    const std::string words = (*it)[1];
    if (std::regex_match(words, kStartsProgram)) page.in_text.push_back({name, words});
  }
  return page;
}

// ---------------------------------------------------------------- Runnable forms of the lines

/// Placeholders, which are whole words, and their values. They are replaced in this order.
const std::vector<std::pair<std::string, std::string>> kPlaceholders = {
    {"train …", "train CONFIG"},
    {"apps/configs/cifar10_resnet20.toml …",
     "apps/configs/cifar10_resnet20.toml compression.method=dgc workers=4"},
    {"config FILE", "config CONFIG"},
    {"--html FILE", "--html page.html"},
    {"data.path=DIR", "data.path=data-cache"},
    {"--data DIR", "--data data-cache"},
    {"methods NAME", "methods dgc"},
    {"diff A B", "diff runs/dense runs/dgc"},
    {"RUN…", "runs/dense runs/dgc"},
    {"RUN", "runs/dgc"},
    {"KEY=VALUE,VALUE…", "seed=1,2"},
    {"workers=N", "workers=2"},
    {"workers=W", "workers=2"},
    {"resnet50.safetensors CONFIG.toml",
     "resnet50.safetensors apps/configs/synthetic_resnet50.toml"},
    {"CONFIG", "tiny.toml"},
};

std::string without_placeholders(std::string text) {
  for (const auto& [name, value] : kPlaceholders) {
    text = " " + text + " ";
    const std::string from = " " + name + " ", to = " " + value + " ";
    for (size_t at; (at = text.find(from)) != std::string::npos;) text.replace(at, from.size(), to);
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

/// Whether a line still has a placeholder.
bool has_placeholder(const std::string& text) {
  return text.find("…") != std::string::npos ||
         std::regex_search(text, std::regex("(^|[ =,/])[A-Z][A-Z_]*($|[ ,./])"));
}

/// The reason why this build or machine cannot run a line; empty if it can.
std::string cannot_run(const std::string& text) {
  if (text.starts_with("srun ")) return "needs Slurm";
  if (text.starts_with("mpirun ") && std::string(WISP_MPIRUN).empty()) return "built without MPI";
  if (!WISP_HAS_SNDFILE && std::regex_search(text, std::regex("deepspeech|runs/own")))
    return "built without libsndfile";
  for (const char* command : {"wisp data ", "wisp predict ", "wisp pack ", "photos_resnet18"}) {
    if (text.find(command) != std::string::npos && !WISP_HAS_OPENCV) return "built without OpenCV";
  }
  return "";
}

/// The line, with f32 in place of bf16 on a CPU that has no bf16.
std::string for_this_cpu(const std::string& text) {
  static const bool has_bf16 = read_text("/proc/cpuinfo").find("avx512_bf16") != std::string::npos;
  return has_bf16 ? text : replaced(text, "train.precision=bf16", "train.precision=f32");
}

/// The line with less work. Keys appended to a training limit it to a few steps on few images. A
/// measurement gets smaller amounts.
std::string shortened(const std::string& text) {
  const auto has = [&](const char* words) { return text.find(words) != std::string::npos; };
  if (has("wisp train ") || has("wisp sweep ")) {
    std::string less;
    if (has("synthetic_resnet50.toml")) {
      less = " train.batch=4 data.side=32 data.train_count=8 data.test_count=4";
    } else if (has("photos_resnet18.toml")) {
      less = " train.batch=4 data.size=32";
    } else if (has("cifar10_resnet20.toml")) {
      less = has("data.path=") ? " model.depth=8"
                               : " model.depth=8 data.name=synthetic data.train_count=160 "
                                 "data.test_count=32";
    } else if (has("apps/configs/")) {
      less = " model.units=8";
    }
    if (has("data.validation=") && !has(".csv")) less += " data.validation=16";
    return text + less + " train.max_steps=2";
  }
  if (has("wisp table ") && (has("--data ") || has(".toml"))) {
    const std::string tiny =
        " --nice 0 --seeds 1 model.depth=8 data.name=synthetic data.train_count=160 "
        "data.test_count=32 train.max_steps=2";
    return replaced(replaced(text, "--data \\S+", ""), "--seeds \\S+", "") + tiny;
  }
  if (!has("wisp bench ")) return text;
  std::string less = replaced(text, "--seconds \\S+", "--seconds 0.05");
  if (!has("--seconds ")) less += " --seconds 0.05";
  if (has("alexnet.toml"))
    less += " train.batch=2 data.side=64 data.train_count=8 data.test_count=4";
  else if (has("ptb_") || has("deepspeech"))
    less += " model.units=8";
  if (!has("bench codec ")) return less;
  return has("--numel ") ? replaced(less, "--numel \\S+", "--numel 100000")
                         : less + " --numel 100000";
}

constexpr const char* kTiny = R"(
workers = 4
threads = 1
model = { name = "mlp", hidden = [12] }
data = { name = "synthetic", train_count = 64, test_count = 16 }
train = { batch = 16, epochs = 1 }
)";

/// A script that makes the files to which the commands refer. A row of a.npy has 64 x 576 elements.
constexpr const char* kPrepare = R"(set -e
train() {
  wisp train apps/configs/cifar10_resnet20.toml model.depth=8 data.name=synthetic data.train_count=160 \
    data.test_count=32 train.max_steps=1 --quiet "$@"
}
train --out runs/dense
train compression.method=dgc --out runs/dgc
train compression.method=dgc --out runs/dgc-again
mkdir runs/quickstart && cp -r runs/dense runs/dgc runs/quickstart
wisp train tiny.toml record.gradients.every=1 --quiet --out run
wisp export run --to model.safetensors
cp my.txt other.txt
sed 's|\.\./configs|apps/configs|' apps/tables/dgc-cifar10.toml >my_table.toml
wisp lm my.txt --out text.arpa
wisp train apps/configs/text_lstm.toml data.path=my.txt model.units=8 train.max_steps=2 --quiet --out runs/text
if [ $WISP_HAS_SNDFILE = 1 ]; then
  wisp train apps/configs/an4_deepspeech.toml data.name=speech data.train=train.csv data.validation=validation.csv \
    data.test=test.csv model.units=8 train.max_steps=2 --quiet --out runs/own
fi
if wisp data tiny.toml --count 2 --write photos; then set -- photos/*; cp "$1" cat.jpg; cp "$2" dog.png; fi
if [ -e cat.jpg ]; then
  mkdir -p my_photos/cats my_photos/dogs
  for i in $(seq 20); do cp cat.jpg my_photos/cats/$i.png; cp dog.png my_photos/dogs/$i.png; done
  wisp pack my_photos shards --side 512
  wisp train apps/configs/photos_resnet18.toml data.path=my_photos data.size=32 train.max_steps=1 --quiet \
    --out ../photos
  mkdir -p runs && ln -s ../../photos runs/photos
fi
mkdir -p docs .local/share/bash-completion/completions .zsh/completions .config/fish/completions runs/a
cp -r run/gradients runs/a
for rank in 0 1; do cp run/gradients/rank_$rank/layer0.weight.npy runs/a/gradients/rank_$rank/x.npy; done
rm -r runs/a/gradients/rank_[23]
cp runs/a/gradients/rank_0/x.npy a.npy
cp runs/a/gradients/rank_1/x.npy b.npy
wisp train apps/configs/synthetic_resnet50.toml workers=1 train.max_steps=1 train.batch=2 data.side=32 \
  data.train_count=2 data.test_count=2 --quiet --out ../resnet50
wisp export ../resnet50 --to ../resnet50.safetensors
ln -s ../resnet50.safetensors resnet50.safetensors
)";

/// A user's directory. It has the program on the path and where a build puts it, runs, recorded
/// gradients, weights, and files of zeros of CIFAR-10's size.
class DocumentedCommands : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    dir_->write("fresh/tiny.toml", kTiny);
    for (const char* file : kCifarFiles)
      fs::resize_file(dir_->write(concat("data-cache/", file), ""), 10'000 * 3073);
    std::string text;
    for (int line = 0; line < 60; ++line)
      text += concat("the company said it saw ", line % 7, " mats\n");
    dir_->write("fresh/my.txt", text);
    for (const char* split : {"train", "valid", "test"}) {
      dir_->write(concat("data-cache/simple-examples/data/ptb.", split, ".txt"), text);
      dir_->write(concat("data-cache/wikitext-2/wiki.", split, ".tokens"), text);
    }
    write_speech();
    fs::create_directory_symlink("../data-cache", *dir_ / "fresh/data-cache");
    fs::create_directories(*dir_ / "fresh/apps");
    fs::create_directory_symlink(WISP_SOURCE "/apps/configs", *dir_ / "fresh/apps/configs");
    fs::create_directory_symlink(WISP_SOURCE "/apps/tables", *dir_ / "fresh/apps/tables");
    fs::create_directories(*dir_ / "fresh/build/release");
    fs::create_directories(*dir_ / "bin");
    for (const char* program : {"fresh/build/release/wisp", "bin/wisp"})
      fs::create_symlink(WISP_PROGRAM, *dir_ / program);
    fs::permissions(dir_->write("bin/mpirun", "#!/bin/sh\nexec " WISP_MPIRUN " \"$@\"\n"),
                    fs::perms::owner_all);
    const CommandResult prepared =
        run_in("fresh", concat("WISP_HAS_SNDFILE=", WISP_HAS_SNDFILE, "\n", kPrepare));
    ASSERT_EQ(prepared.status, 0) << prepared.output;
  }
  static void TearDownTestSuite() { delete dir_; }

  /// Writes AN4 and a corpus of your own, each of half seconds of silence.
  static void write_speech() {
    const std::string sound = wav_file(std::string(16000, '\0'));
    for (const char* part : {"an4_clstk", "an4test_clstk"}) {
      const std::string folder = concat("data-cache/an4/wav/", part, "/fa/");
      std::string texts;
      for (int i = 0; i < 16; ++i) {
        dir_->write(concat(folder, "u", i, ".wav"), sound);
        texts += concat("u", i, " YES\n");
      }
      dir_->write(folder + "fa.trans.txt", texts);
    }
    std::string list = "audio,text\n";
    for (int i = 0; i < 16; ++i)
      list += concat("data-cache/an4/wav/an4_clstk/fa/u", i, ".wav,yes\n");
    for (const char* split : {"train", "validation", "test"})
      dir_->write(concat("fresh/", split, ".csv"), list);
    dir_->write("fresh/a.wav", sound);
  }

  static CommandResult run_in(const std::string& folder, const std::string& script) {
    const std::string at = *dir_ / folder;
    return run_command(concat("cd ", at, " && HOME=", at, " PATH=", *dir_ / "bin", ":$PATH env -u ",
                              "WISP_DATA bash ", dir_->write("script", script)));
  }

  /// Runs the line in a copy of the directory, without the output that the line will make.
  static CommandResult run(const std::string& line) {
    fs::remove_all(*dir_ / "work");
    fs::copy(*dir_ / "fresh", *dir_ / "work",
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    std::smatch out;
    if (line.find("--resume") == std::string::npos &&
        std::regex_search(line, out, std::regex("--out (\\S+)")))
      fs::remove_all(*dir_ / ("work/" + out[1].str()));
    return run_in("work", line + "\n");
  }

  static void expect_runs(const CommandLine& command) {
    for (const std::string& form : forms(command.text)) {
      const std::string line = without_placeholders(form);
      if (has_placeholder(line)) {
        ADD_FAILURE() << command.where << ": '" << line
                      << "' has a placeholder, or lacks a file, that this test does not know";
        continue;
      }
      if (!ran_.insert(line).second) continue;
      const std::string why_not = cannot_run(line);
      if (!why_not.empty()) {
        std::cout << command.where << ": not run: " << line << ": " << why_not << "\n";
        continue;
      }
      const CommandResult result = run(for_this_cpu(shortened(line)));
      const bool differ = result.status == 1 && line.find("wisp diff ") != std::string::npos;
      EXPECT_TRUE(result.status == 0 || differ)
          << command.where << ": " << shortened(line) << "\nstatus " << result.status << "\n"
          << result.output;
    }
  }

  static TempDir* dir_;
  static std::set<std::string> ran_;
};
TempDir* DocumentedCommands::dir_ = nullptr;
std::set<std::string> DocumentedCommands::ran_;

std::map<std::string, Page> pages() {
  std::map<std::string, Page> pages;
  for (const char* name : {"README.md", "CONTRIBUTING.md"})
    pages[name] = read_page(name, read_text(concat(WISP_SOURCE "/", name)));
  for (const auto& entry : fs::directory_iterator(WISP_SOURCE "/docs")) {
    const std::string name = "docs/" + entry.path().filename().string();
    if (name.ends_with(".md")) pages[name] = read_page(name, read_text(entry.path().string()));
  }
  return pages;
}

TEST_F(DocumentedCommands, OfBlocksRun) {
  size_t lines = 0;
  for (const auto& [name, page] : pages()) {
    for (const CommandLine& command : page.block_lines) expect_runs(command);
    lines += page.block_lines.size();
  }
  EXPECT_GE(lines, 20u) << "of README alone there are 16";
}

/// A span like `wisp plan --dry` names options; any other span is a whole line.
TEST_F(DocumentedCommands, InTextRun) {
  for (const auto& [name, page] : pages()) {
    for (const CommandLine& command : page.in_text) {
      std::smatch options;
      if (!std::regex_match(command.text, options, kNamesOptionsOnly)) {
        expect_runs(command);
        continue;
      }
      const std::string subcommand = replaced(command.text, " --.*", "");
      const CommandResult help = run_in("fresh", subcommand + " --help");
      EXPECT_EQ(help.status, 0) << command.where << ": " << subcommand;
      std::istringstream words(options[1]);
      for (std::string word; words >> word;)
        EXPECT_NE((help.output + " ").find("  " + word), std::string::npos)
            << command.where << ": " << subcommand << " has no option " << word;
    }
  }
}

/// The subcommands that the help of `program` lists, with their own subcommands.
std::vector<std::string> subcommands(const std::string& program,
                                     const std::function<std::string(const std::string&)>& help) {
  std::vector<std::string> all = {program};
  const std::string text = help(program);
  const size_t begin = text.find("Subcommands:\n");
  if (begin == std::string::npos) return all;
  std::istringstream lines(text.substr(begin));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line.starts_with("  ")) {
    std::smatch name;
    if (!std::regex_search(line, name, std::regex("^  ([a-z]+) "))) continue;
    for (const std::string& found : subcommands(program + " " + name[1].str(), help))
      all.push_back(found);
  }
  return all;
}

TEST_F(DocumentedCommands, OfTheHelpRun) {
  const auto help = [](const std::string& program) {
    const CommandResult result = run_in("fresh", program + " --help");
    EXPECT_EQ(result.status, 0) << program << "\n" << result.output;
    return result.output;
  };
  const std::vector<std::string> programs = subcommands("wisp", help);
  EXPECT_GT(programs.size(), 13u);
  for (const std::string& program : programs) {
    std::istringstream lines(help(program));
    for (std::string line; std::getline(lines, line);) {
      const std::string text = replaced(line, "^ +", "");
      if (line.starts_with("  ") && std::regex_match(text, kStartsProgram))
        expect_runs({program + " --help", text});
    }
  }
}

TEST(DocumentedCommand, IsFoundWhereverItStands) {
  const Page page = read_page("page",
                              "Text `wisp plan\n--dry`, `wisp`, `wisp train …`.\n\n"
                              "```\nbuild/release/wisp eval RUN  # why\nwisp codec --in a \\\n  b\n"
                              "wisp: an error\nmpirun -n 4 wisp train CONFIG\n```\n");
  ASSERT_EQ(page.in_text.size(), 2u);
  EXPECT_EQ(page.in_text[0].text, "wisp plan --dry");
  ASSERT_EQ(page.block_lines.size(), 3u);
  EXPECT_EQ(page.block_lines[0].text, "build/release/wisp eval RUN");
  EXPECT_EQ(page.block_lines[1].text, "wisp codec --in a b");
  EXPECT_EQ(page.block_lines[1].where, "page:6");
  EXPECT_EQ(page.block_lines[2].text, "mpirun -n 4 wisp train CONFIG");
}

TEST(DocumentedCommand, HasNoPlaceholderThatNobodyKnows) {
  EXPECT_EQ(forms("wisp methods [dgc]"),
            (std::vector<std::string>{"wisp methods", "wisp methods dgc"}));
  EXPECT_EQ(without_placeholders("wisp report RUN… --html FILE"),
            "wisp report runs/dense runs/dgc --html page.html");
  for (const char* unknown :
       {"wisp train FILE", "wisp train tiny.toml …", "wisp eval x data.path=D",
        "wisp export RUN_DIR/x --to a", "wisp sweep tiny.toml seed=A,B"})
    EXPECT_TRUE(has_placeholder(without_placeholders(unknown))) << unknown;
  EXPECT_FALSE(has_placeholder("wisp train apps/configs/A1.toml optimizer.lr=1E-3 --out runs/dgc"));
}

}  // namespace
}  // namespace wisp
