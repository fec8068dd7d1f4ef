#include "core/io/output_streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

/// What `f` writes to stdout.
std::string out_of(const std::function<void()>& f) {
  testing::internal::CaptureStdout();
  f();
  return testing::internal::GetCapturedStdout();
}

std::string errors_of(const std::function<void()>& f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
}

/// A stream into a pipe that nobody reads.
std::FILE* unread_pipe() {
  std::signal(SIGPIPE, SIG_IGN);  // as the program does
  int ends[2];
  WISP_CHECK(pipe(ends) == 0, "no pipe");
  close(ends[0]);
  return fdopen(ends[1], "w");
}

/// Redirects stdout while it lives.
class StdoutTo {
 public:
  explicit StdoutTo(std::FILE* stream) : before_(dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    dup2(fileno(stream), STDOUT_FILENO);
    std::fclose(stream);
  }
  ~StdoutTo() {
    std::fflush(stdout);
    std::clearerr(stdout);
    dup2(before_, STDOUT_FILENO);
    close(before_);
  }
  StdoutTo(const StdoutTo&) = delete;
  StdoutTo& operator=(const StdoutTo&) = delete;

 private:
  int before_;
};

TEST(OutputStreams, NeverPrintWhatATerminalObeys) {
  EXPECT_EQ(out_of([] { write_out("a\x1b[2J\n\tb\n"); }), "a\\x1b[2J\n\tb\n");
  EXPECT_EQ(out_of([] { write_progress("\r\u009b\n"); }), "\\r\\u009b\n");
  EXPECT_EQ(errors_of([] { write_notice("x\ny\x07"); }), "wisp: x\n  y\\x07\n");
  EXPECT_EQ(errors_of([] { write_usage("x\ny\x07\n"); }), "x\ny\\x07\n");
}

TEST(OutputStreams, AReaderThatHasGoneIsNoOtherFailure) {
  const StdoutTo nobody(unread_pipe());
  EXPECT_THROW(write_out("x"), ReaderGone);
}

TEST(OutputStreams, AFullDiskIsAnErrorOfWhatWasAskedFor) {
  const StdoutTo full(std::fopen("/dev/full", "w"));
  EXPECT_EQ(error_of([] { write_out("x"); }),
            "the output could not be written: No space left on device");
}

TEST(OutputStreams, WorkGoesOnWithoutItsLog) {
  for (const bool full : {false, true}) {
    std::FILE* const stream = full ? std::fopen("/dev/full", "w") : unread_pipe();
    const int number = fileno(stream);
    EXPECT_EQ(errors_of([&] { redraw(stream, "\r\x1b[K"); }),
              full ? "wisp: the log cannot be written: No space left on device; the work goes on "
                     "without it\n"
                   : "wisp: the log cannot be written: Broken pipe; the work goes on without it\n");
    EXPECT_EQ(errors_of([&] { redraw(stream, std::string(100'000, 'x')); }), "") << "said once";
    EXPECT_EQ(fileno(stream), number) << "no other file may take it";
    EXPECT_EQ(std::fclose(stream), 0);
  }
}

TEST(OutputStreams, NoticesThatNobodyReadsEndNothing) {
  const int before = dup(STDERR_FILENO);
  std::FILE* const nobody = unread_pipe();
  dup2(fileno(nobody), STDERR_FILENO);
  std::fclose(nobody);
  write_notice("x");
  dup2(before, STDERR_FILENO);
  close(before);
  EXPECT_EQ(errors_of([] { write_notice("y"); }), "wisp: y\n");
}

}  // namespace
}  // namespace wisp
