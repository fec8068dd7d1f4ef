// Tests of completion in shells: the words that the program offers, and how a shell inserts them.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  std::istringstream stream(text);
  Lines lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The offers for the last of the words typed after the program's name.
Lines offered(const std::string& typed) {
  const CommandResult result = run_command(concat("'", WISP_PROGRAM, "' complete -- ", typed));
  EXPECT_EQ(result.status, 0) << result.output;
  return lines_of(result.output);
}

bool is_there(const std::string& shell) { return run_command("command -v " + shell).status == 0; }

TEST(Completion, OffersCommandsOptionsAndKeys) {
  EXPECT_EQ(offered("tr"), (Lines{"train", "transcribe"}));
  EXPECT_EQ(offered("bench co"), Lines{"codec"});
  EXPECT_EQ(offered("train x.toml --over"), Lines{"--overwrite"});
  EXPECT_EQ(offered("train x.toml optimizer.mom"), Lines{"optimizer.momentum="});
  EXPECT_EQ(offered("train --out a x.toml optimizer.mom"), Lines{"optimizer.momentum="});
  EXPECT_EQ(offered("train ''"), Lines{}) << "a file";
  EXPECT_EQ(offered("train x.toml --out r"), Lines{}) << "a file";
  EXPECT_EQ(offered("completion ''"), (Lines{"bash", "fish", "zsh"}));
  EXPECT_EQ(offered("compl"), Lines{"completion"}) << "what shells call is for no person";
}

TEST(Completion, OffersValues) {
  EXPECT_EQ(offered("train x.toml compression.method=onebit"),
            (Lines{"compression.method=onebit", "compression.method=onebit_adam"}));
  EXPECT_EQ(offered("train x.toml model.name=l"), Lines{"model.name=lstm_lm"});
  EXPECT_EQ(offered("train x.toml data.name=pt"), Lines{"data.name=ptb"});
  EXPECT_EQ(offered("train x.toml optimizer.kind="),
            (Lines{"optimizer.kind=adamw", "optimizer.kind=sgd"}));
  EXPECT_EQ(offered("train x.toml compression.overlap="),
            (Lines{"compression.overlap=true", "compression.overlap=false"}));
  EXPECT_EQ(offered("train x.toml data.path="), Lines{}) << "a file";
  EXPECT_EQ(offered("train x.toml train.batch="), Lines{}) << "a number";
  EXPECT_EQ(offered("sweep x.toml compression.method=none,power"),
            Lines{"compression.method=none,powersgd"});
  for (const std::string typed : {"methods terng", "bench codec --method terng"})
    EXPECT_EQ(offered(typed), Lines{"terngrad"}) << typed;
  EXPECT_EQ(offered("table grace"), Lines{"grace-cifar10"});
  EXPECT_EQ(offered("table grace-cifar10 --scale x"), Lines{});
  EXPECT_EQ(offered("bench codec --method=terng"), Lines{"--method=terngrad"});
  EXPECT_EQ(offered("generate run train.prec"), Lines{"train.precision="});
  EXPECT_EQ(offered("score run my.txt train.prec"), Lines{"train.precision="});
  EXPECT_EQ(offered("eval run train.prec"), Lines{"train.precision="});
}

/// A key offers the words that it accepts.
TEST(Completion, OffersTheWordsOfEveryComponent) {
  for (const auto& [key, word] :
       std::vector<std::pair<std::string, std::string>>{{"schedule.kind", "one_cycle"},
                                                        {"train.precision", "bf16"},
                                                        {"device", "emulated"},
                                                        {"compression.scope", "bucket"},
                                                        {"compression.warmup", "exponential"},
                                                        {"compression.selection", "sampled"},
                                                        {"compression.feedback", "ef21_sgdm"},
                                                        {"compression.values", "bf16"},
                                                        {"compression.norm", "l2"},
                                                        {"gossip.code", "qsgd"},
                                                        {"model.stem", "3x3"},
                                                        {"clip.where", "mean"},
                                                        {"model.loss", "sum_over_time"}})
    EXPECT_EQ(offered("train x.toml " + key + "=" + word), Lines{key + "=" + word});
}

class Shell : public testing::Test {
 protected:
  void SetUp() override {
    bin_ = std::filesystem::path(WISP_PROGRAM).parent_path().string();
    std::filesystem::create_directory(dir_ / "here");
    dir_.write("here/my run.toml", "");
  }
  std::string script(const std::string& shell) const {
    return dir_.write(shell, run_command(concat("'", WISP_PROGRAM, "' completion ", shell)).output);
  }
  /// The output of a shell script, in a folder with one file, "my run.toml".
  Lines said(const std::string& shell, const std::string& text) const {
    const std::string file = dir_.write("asked", text);
    const CommandResult result = run_command(
        concat("cd '", dir_ / "here", "' && PATH='", bin_, "':$PATH ", shell, " '", file, "'"));
    return lines_of(result.output);
  }
  TempDir dir_;
  std::string bin_;
};

class Bash : public Shell {
 protected:
  /// The replacements of bash for the last of its `words`, one of which is "=". `before`: a
  /// setting.
  Lines replies(const std::string& words, const std::string& before = "") const {
    return said("bash", concat("source '", script("bash"), "'\n", before, "\nCOMP_WORDS=(", words,
                               ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n",
                               "_wisp\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"));
  }
};

TEST_F(Bash, CompletesWordsThatItCutsAtEqualsSigns) {
  EXPECT_EQ(replies("wisp tr"), (Lines{"train", "transcribe"}));
  EXPECT_EQ(replies("wisp train x.toml compression.me"), Lines{"compression.method="});
  EXPECT_EQ(replies("wisp train x.toml compression.method = terng"), Lines{"terngrad"});
  EXPECT_EQ(replies("wisp train x.toml optimizer.kind ="), (Lines{"adamw", "sgd"}));
  EXPECT_EQ(replies("wisp train x.toml workers = 2 optimizer.kind = s"), Lines{"sgd"});
  EXPECT_EQ(replies("wisp train x.toml optimizer.kind=s", "COMP_WORDBREAKS=${COMP_WORDBREAKS//=}"),
            Lines{"optimizer.kind=sgd"});
}

TEST_F(Bash, CompletesFiles) {
  EXPECT_EQ(replies("wisp train m"), Lines{"my run.toml"});
  EXPECT_EQ(replies("wisp train x.toml data.path = m"), Lines{"my run.toml"});
}

/// Without these options, readline would put a backslash before "=", as in a file name.
TEST_F(Bash, QuotesNoKeys) {
  const Lines rule = said("bash", concat("source '", script("bash"), "'\ncomplete -p wisp\n"));
  EXPECT_EQ(rule, Lines{"complete -F _wisp wisp"});
  const Lines options =
      said("bash", concat("source '", script("bash"), "'\ncompopt() { echo \"$@\"; }\n",
                          "COMP_WORDS=(wisp train x.toml compression.me)\nCOMP_CWORD=3\n_wisp\n"));
  EXPECT_EQ(options, Lines{"-o nospace"});
}

/// In a terminal, the command gets these words after the tab key was pressed.
TEST_F(Bash, InsertsKeysAndValuesAsTheyAre) {
  if (!is_there("script")) GTEST_SKIP() << "script, which makes a terminal, is not installed";
  if (!PseudoTerminal().opened()) GTEST_SKIP() << kNoTerminal;
  const std::string rc = dir_.write(
      "rc", concat("source '", script("bash"), "'\nPS1=\nbind 'set enable-bracketed-paste off'\n",
                   "wisp() { if [[ $1 == complete ]]; then '", WISP_PROGRAM,
                   "' \"$@\"; else printf '<%s>' \"$@\"; fi; }\n"));
  const std::string typed =
      dir_.write("typed", "wisp train x.toml compression.me\tterng\t\nexit\n");
  const std::string shell = dir_.write("shell", "exec bash --noprofile --rcfile '" + rc + "' -i\n");
  const CommandResult result =
      run_command(concat("(TERM=dumb script -qec 'sh ", shell, "' /dev/null <'", typed, "')"));
  EXPECT_NE(result.output.find("<x.toml><compression.method=terngrad>"), std::string::npos)
      << result.output;
}

TEST_F(Shell, ZshCompletesKeysValuesAndFiles) {
  if (!is_there("zsh")) GTEST_SKIP() << "zsh is not installed";
  if (!PseudoTerminal().opened()) GTEST_SKIP() << kNoTerminal;
  const auto completed = [&](const std::string& typed) {
    // types into a shell in a terminal, and reads the line
    return said("zsh -f", concat(
                              R"(zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1= ; autoload -U compinit && compinit -u -D; source ')",
                              script("zsh"),
                              R"('; unsetopt zle_bracketed_paste
show() { print -r -- "<$BUFFER>"; BUFFER=; zle accept-line }; zle -N show; bindkey "^X" show; print re''ady'
while zpty -r z line; do [[ $line == *ready* ]] && break; done
zpty -w -n z ')",
                              typed, R"('$'\t\x18'
while zpty -r z line; do [[ $line == *'<'*'>'* ]] && break; done
print -r -- ${${line##*<}%%>*}
zpty -d z
)"));
  };
  EXPECT_EQ(completed("wisp train x.toml compression.me"),
            Lines{"wisp train x.toml compression.method="});
  EXPECT_EQ(completed("wisp train x.toml compression.method=terng"),
            Lines{"wisp train x.toml compression.method=terngrad "});
  EXPECT_EQ(completed("wisp tra"), Lines{"wisp tra"}) << "train or transcribe";
  EXPECT_EQ(completed("wisp train m"), Lines{"wisp train my\\ run.toml "});
  EXPECT_EQ(completed("wisp train x.toml data.path=m"),
            Lines{"wisp train x.toml data.path=my\\ run.toml "});
}

TEST_F(Shell, FishCompletesKeysValuesAndFiles) {
  if (!is_there("fish")) GTEST_SKIP() << "fish is not installed";
  const auto completed = [&](const std::string& typed) {
    return said("fish --no-config",
                concat("source '", script("fish"), "'\ncomplete -C '", typed, "'\n"));
  };
  EXPECT_EQ(completed("wisp train x.toml compression.me"), Lines{"compression.method="});
  EXPECT_EQ(completed("wisp train x.toml compression.method=terng"),
            Lines{"compression.method=terngrad"});
  EXPECT_EQ(completed("wisp tr"), (Lines{"train", "transcribe"}));
  EXPECT_EQ(completed("wisp train m"), Lines{"my run.toml"});
  EXPECT_EQ(completed("wisp train x.toml data.path=m"), Lines{"data.path=my run.toml"});
}

}  // namespace
}  // namespace wisp
