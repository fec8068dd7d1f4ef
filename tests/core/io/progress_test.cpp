#include "core/io/progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/error_of.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

ProgressReport sample() {
  return {.epoch = 3,
          .epochs = 30,
          .step = 120,
          .steps = 390,
          .loss = 1.23456,
          .metric = "accuracy 45.67 %",
          .rate = 1234.4,
          .reduction = 276.74,
          .left_s = 125.0};
}

/// The text that `draw` prints.
template <class F>
std::string printed(Terminal terminal, int64_t interval, F&& draw) {
  const TempDir dir;
  std::FILE* out = std::fopen((dir / "out").c_str(), "w");
  ProgressLine line(out, terminal, interval);
  draw(line);
  std::fclose(out);
  return read_text(dir / "out");
}

TEST(Progress, TextHasAllThatIsKnown) {
  EXPECT_EQ(progress_text(sample()),
            "epoch 3/30  120/390  loss 1.2346  accuracy 45.67 %  1234 images/s  276.7x less  "
            "2:05 left");
  EXPECT_EQ(progress_text({.epoch = 1, .epochs = 2, .step = 0, .steps = 5}), "epoch 1/2  0/5");
  EXPECT_EQ(progress_text({.left_s = 3723.4}), "epoch 1/1  0/1  1:02:03 left");
}

TEST(Progress, BarFillsTheWidth) {
  EXPECT_EQ(progress_bar({.epoch = 1, .epochs = 2, .step = 1, .steps = 4}, 26),
            "epoch 1/2 [==>       ] 1/4");
  EXPECT_EQ(progress_bar({.epoch = 1, .epochs = 2, .step = 4, .steps = 4}, 28),
            "epoch 1/2 [============] 4/4");
  EXPECT_EQ(progress_bar({.epoch = 1, .epochs = 2, .step = 0, .steps = 4}, 200).size(), 56u);
}

TEST(Progress, BarNeverExceedsTheWidth) {
  const std::string text = progress_text(sample());
  for (int width = 0; width < 140; ++width)
    ASSERT_LE(progress_bar(sample(), width).size(), static_cast<size_t>(width));
  EXPECT_EQ(progress_bar(sample(), 95), text);  // no room for a bar
  EXPECT_EQ(progress_bar(sample(), 85),         // no room for gaps either
            "epoch 3/30 120/390 loss 1.2346 accuracy 45.67 % 1234 images/s 276.7x less 2:05 left");
  EXPECT_EQ(progress_bar(sample(), 20), "epoch 3/30 120/390 l");
}

TEST(Progress, TerminalRewritesOneLine) {
  const ProgressReport one{.step = 1, .steps = 2}, two{.step = 2, .steps = 2};
  EXPECT_EQ(printed({.interactive = true, .width = 30}, 1,
                    [&](ProgressLine& line) {
                      line.update(one);
                      line.say("test accuracy 0.9");
                      line.update(two);
                      line.finish();
                      line.finish();
                    }),
            "\r\x1b[Kepoch 1/1 [======>      ] 1/2"
            "\r\x1b[Ktest accuracy 0.9\n"
            "\r\x1b[Kepoch 1/1 [=============] 2/2\n");
}

TEST(Progress, FileGetsAPlainLineNowAndThen) {
  EXPECT_EQ(printed({}, 10,
                    [](ProgressLine& line) {
                      for (int64_t step = 1; step <= 25; ++step)
                        line.update({.step = step, .steps = 25});
                      line.say("done");
                      line.finish();
                    }),
            "epoch 1/1  10/25\nepoch 1/1  20/25\nepoch 1/1  25/25\ndone\n");
}

TEST(Progress, AFileIsNoTerminal) {
  const TempDir dir;
  std::FILE* out = std::fopen((dir / "out").c_str(), "w");
  EXPECT_FALSE(terminal_of(out, "xterm").interactive);
  EXPECT_EQ(terminal_of(out, "xterm").width, 80);
  std::fclose(out);
}

TEST(Progress, ATerminalThatKnowsNoEscapesGetsPlainLines) {
  const PseudoTerminal terminal;
  if (!terminal.opened()) GTEST_SKIP() << kNoTerminal;
  std::FILE* out = fdopen(dup(terminal.descriptor()), "w");
  EXPECT_TRUE(terminal_of(out, "xterm").interactive);
  EXPECT_FALSE(terminal_of(out, "dumb").interactive);
  EXPECT_FALSE(terminal_of(out, "").interactive);
  std::fclose(out);
}

TEST(Progress, NamesDoNotReachTheTerminalRaw) {
  EXPECT_EQ(printed({.interactive = true, .width = 99}, 1,
                    [](ProgressLine& line) {
                      line.update({.step = 1, .steps = 1, .metric = "a\x1b[2J\r"});
                      line.say("b\x1b[1A\nc");
                    }),
            "\r\x1b[Kepoch 1/1 [========================================] 1/1  a\\x1b[2J\\r"
            "\r\x1b[Kb\\x1b[1A\nc\n");
}

TEST(Progress, AStreamThatCannotBeWrittenEndsNothing) {
  std::FILE* out = std::fopen("/dev/full", "w");
  ProgressLine line(out, {.interactive = true}, 1);
  testing::internal::CaptureStderr();
  line.say("x");
  line.update({.step = 1, .steps = 2});
  line.clear();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "wisp: the log cannot be written: No space left on device; the work goes on without "
            "it\n");
  EXPECT_EQ(std::fclose(out), 0);
}

TEST(Progress, LinesAreAtLeastAStepApart) {
  EXPECT_EQ(error_of([] { ProgressLine(stdout, {}, 0); }),
            "progress: a line every 0 steps, expected 1 or more");
}

}  // namespace
}  // namespace wisp
