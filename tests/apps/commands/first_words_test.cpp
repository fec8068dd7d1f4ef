// Tests of the text that a user reads first: help, and the opening, lines and end of a run.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/command.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

/// The printed lines of a small run in a separate directory.
std::string lines_of(const TempDir& dir, const std::string& overrides) {
  const std::string config = dir.write("tiny.toml", tiny_text(kTinyModel));
  const CommandResult run = run_command(concat(WISP_PROGRAM " train ", config, " train.epochs=1 ",
                                               overrides, " --overwrite --out ", dir / "run"));
  EXPECT_EQ(run.status, 0) << run.output;
  return run.output;
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected " << part << "\n" << text;
}

TEST(FirstWords, OfARunSayWhatIsTrainedOnWhatAndWhere) {
  const TempDir dir;
  const std::string text = lines_of(dir, "workers=2 compression.method=topk compression.ratio=0.1");
  const std::string opening = concat(
      "model: mlp, 74002 parameters to train\n"
      "data: synthetic, train 128, test 40\n"
      "workers: 2 threads, on cpu, method topk\n"
      "run directory: ",
      dir / "run", "\n");
  expect_in(text, opening);
  EXPECT_LT(text.find(opening), text.find("epoch 1/1")) << text;
  expect_in(lines_of(dir, "--quiet"), "");
  EXPECT_EQ(lines_of(dir, "--quiet"), "");
}

TEST(FirstWords, OfFiguresAreTheirNames) {
  const TempDir dir;
  const std::string text = lines_of(dir, "workers=2");
  expect_in(text, "  accuracy ");
  expect_in(text, "less than dense");
}

TEST(FirstWords, OfOneWorkerSayThatNothingIsSent) {
  const TempDir dir;
  const std::string text = lines_of(dir, "workers=1 compression.method=topk compression.ratio=0.1");
  expect_in(text, "workers: 1, on cpu\n");
  expect_in(text, "/s, one worker sends nothing\n");
  EXPECT_EQ(text.find("1.0x"), std::string::npos) << text;
  const CommandResult report =
      run_command(concat(WISP_PROGRAM " report ", dir / "run", " --html ", dir / "report.html"));
  EXPECT_EQ(report.status, 0);
  EXPECT_EQ(report.output.find("1.0x"), std::string::npos) << report.output;
  for (const char* flattering : {"1.0x", "1 / 1.0"})
    EXPECT_EQ(read_text(dir / "report.html").find(flattering), std::string::npos) << flattering;
}

TEST(FirstWords, OfAResumedRunSayWhereItGoesOn) {
  const TempDir dir;
  lines_of(dir, "");
  const CommandResult run = run_command(
      concat(WISP_PROGRAM " train ", dir / "tiny.toml", " --resume --out ", dir / "run"));
  expect_in(run.output, "goes on after step 4\n");
}

TEST(FirstWords, OfHelpSayWhatAnOptionIsIfItIsLeftOut) {
  const std::pair<const char*, const char*> shown[] = {{"score", "--checkpoint TEXT=last"},
                                                       {"eval", "--checkpoint TEXT=last"},
                                                       {"export", "--checkpoint TEXT=last"},
                                                       {"sweep", "=1"},
                                                       {"predict", "=3"},
                                                       {"bench step", "--seconds FLOAT=8"},
                                                       {"bench codec", "--ratio FLOAT=0."},
                                                       {"data", "--count INT"}};
  for (const auto& [command, part] : shown)
    expect_in(run_command(concat(WISP_PROGRAM " ", command, " --help")).output, part);
}

/// Keys may stand before or after files. A word that names an existing file is not a key.
TEST(FirstWords, AreKeysOrFiles) {
  const TempDir dir;
  tiny_text_train(dir / "run", dir.write("text", tiny_lines(100)), {"train.epochs=1"});
  dir.write("data.window=3", "one two\n");
  const auto score = [&](const std::string& words) {
    return run_command("cd " + (dir / "") + " && " WISP_PROGRAM " score run " + words);
  };
  dir.write("mine", "one two three\n");
  for (const char* words : {"threads=1 mine", "mine threads=1 data.window=4"})
    EXPECT_EQ(score(words).status, 0) << score(words).output;
  expect_in(score("data.window=3").output, "data.window=3: perplexity");
  expect_in(score("mine thread=1").output, "unknown key 'thread'");
  expect_in(score("threads=1").output, "no file is named, only keys to change: threads=1");
  expect_in(score("mine text").output, "one text is scored at a time, and there are 2: mine, text");
  expect_in(score("a.b=1/c.txt").output, "a.b");
}

}  // namespace
}  // namespace wisp
