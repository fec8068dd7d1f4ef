// Tests of the files that the program writes to a path given by the user.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/command.h"
#include "tests/support/program.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

/// Commands that write one file, which lack its name. `run` is a trained run.
std::vector<std::string> commands_that_write(const std::string& run, const std::string& text) {
  const std::string begin = concat(WISP_PROGRAM, " ");
  return {begin + "lm " + text + " --out ", begin + "report " + run + " --html ",
          begin + "eval " + run + " --predictions "};
}

TEST_F(Program, WritesThroughPipesAndKeepsLinksAndModes) {
  const std::string path = dir_ / "run", text = dir_.write("text", "a b c\na b d\n");
  ASSERT_EQ(run({"train", config(), "train.max_steps=2", "--quiet", "--out", path}), 0) << said();
  for (const std::string& command : commands_that_write(path, text)) {
    ASSERT_EQ(run_command(command + (dir_ / "plain")).status, 0) << command;
    const std::string written = read_text(dir_ / "plain");
    EXPECT_FALSE(written.empty());

    dir_.write("real", "old");
    fs::permissions(dir_ / "real", fs::perms::owner_read | fs::perms::owner_write);
    fs::remove(dir_ / "link");
    fs::create_symlink("real", dir_ / "link");
    ASSERT_EQ(run_command(command + (dir_ / "link")).status, 0) << command;
    EXPECT_EQ(read_text(dir_ / "real"), written) << command;
    EXPECT_TRUE(fs::is_symlink(dir_ / "link")) << command;
    EXPECT_EQ(fs::status(dir_ / "real").permissions(),
              fs::perms::owner_read | fs::perms::owner_write);

    fs::remove(dir_ / "pipe");
    ASSERT_EQ(mkfifo((dir_ / "pipe").c_str(), 0600), 0);
    const CommandResult piped =
        run_command(concat("(cat ", dir_ / "pipe", " > ", dir_ / "read") + ") & " + command +
                    (dir_ / "pipe") + "; status=$?; wait; exit $status");
    ASSERT_EQ(piped.status, 0) << piped.output;
    EXPECT_EQ(read_text(dir_ / "read"), written) << command;
    EXPECT_TRUE(fs::is_fifo(dir_ / "pipe"));

    ASSERT_EQ(run_command("exec 3>" + (dir_ / "third") + "; " + command + "/dev/fd/3").status, 0);
    EXPECT_EQ(read_text(dir_ / "third"), written) << command;
  }
}

TEST_F(Program, ReadsAPipeThatIsOpenAndWaitsForNoOther) {
  const std::string print = concat(WISP_PROGRAM, " config "), file = config();
  const std::string written = run_command(print + file).output;
  EXPECT_NE(written.find("[model]"), std::string::npos) << written;
  EXPECT_EQ(run_command(concat("(cat ", file, " | ", print, "/dev/stdin)")).output, written);
  EXPECT_EQ(run_command(concat("(cat ", file, " | ", print, "/dev/fd/3 3<&0)")).output, written);

  ASSERT_EQ(mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  const std::string refusal = dir_ / "pipe: it is no file, but a pipe\n";
  EXPECT_EQ(run_command(print + (dir_ / "pipe")).output, "wisp: " + refusal);
  const std::string extending = dir_.write("extending.toml", "extends = 'pipe'\n");
  EXPECT_EQ(run_command(print + extending).output,
            concat("wisp: ", extending, ":1: extends ", refusal));
  dir_.write("endless.toml", "extends = '/dev/zero'\n");
  EXPECT_EQ(run_command(print + (dir_ / "endless.toml")).output,
            concat("wisp: ", dir_ / "endless.toml",
                   ":1: extends /dev/zero: it is no file, but a device\n"));
}

TEST_F(Program, WritesAFileThatIsMounted) {
  const std::string text = dir_.write("text", "a b c\na b d\n"), file = dir_.write("file", "old");
  const std::string mount = "unshare --mount sh -c 'mount --bind " + file + " " + file + " && ";
  if (run_command(mount + "true'").status != 0) GTEST_SKIP() << "needs to mount";
  const std::string lm = concat(WISP_PROGRAM, " lm ", text, " --out ");
  const CommandResult result = run_command(mount + lm + file + "'");
  EXPECT_EQ(result.status, 0) << result.output;
  ASSERT_EQ(run_command(lm + (dir_ / "plain")).status, 0);
  EXPECT_EQ(read_text(file), read_text(dir_ / "plain"));
  const auto hidden = [](const auto& entry) { return entry.path().filename().string()[0] == '.'; };
  EXPECT_FALSE(std::ranges::any_of(fs::directory_iterator(dir_.path()), hidden));
}

TEST_F(Program, NamesTheFileThatIsLargerThanTheLimit) {
  const std::string path = dir_ / "run", text = dir_.write("text", "a b c\na b d\n");
  ASSERT_EQ(run({"train", config(), "train.max_steps=2", "--quiet", "--out", path}), 0) << said();
  const std::string file = dir_.write("file", "old");
  for (const std::string& command : commands_that_write(path, text)) {
    // the limit counts blocks of 512 bytes
    const CommandResult result = run_command("ulimit -f 0; " + command + file);
    EXPECT_EQ(result.status, 1) << command;
    EXPECT_NE(result.output.find("wisp: " + file + ": cannot be written: File too large"),
              std::string::npos)
        << command << ": " << result.output;
    EXPECT_EQ(read_text(file), "old");
  }
}

TEST_F(Program, MakesAnNgramModelOnlyToScoreAText) {
  const std::string text = dir_.write("text", "a b c\na b d\n");
  EXPECT_EQ(run({"lm", text, "--perplexity", text}), 0) << said();
  EXPECT_TRUE(said().starts_with(text + ": 7 1-grams, ")) << said();
  EXPECT_NE(said().find(text + ": perplexity "), std::string::npos) << said();
  EXPECT_EQ(run({"lm", text}), 2);
  EXPECT_EQ(said(), "--out or --perplexity is required\nRun with --help for more information.\n");
}

}  // namespace
}  // namespace wisp
