// The progress of a run, for a person. A terminal shows one line that is rewritten; a file gets a
// line at intervals. One thread at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

namespace wisp {

struct ProgressReport {
  int64_t epoch = 1, epochs = 1;  // counted from 1
  int64_t step = 0, steps = 1;    // within the epoch
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::string metric;                                        // "accuracy 45.67 %"; empty: not shown
  double rate = 0.0;                                         // per second; 0: not shown
  std::string unit = "images";                               // unit of the rate
  double reduction = 0.0;                                    // dense / sent; 0: not shown
  double left_s = std::numeric_limits<double>::quiet_NaN();  // time left in the run; NaN: not shown
};

/// "epoch 3/30 [====>  ] 120/390  loss 1.2345  accuracy 45.67 %  1234 images/s  276.7x  2:05 left".
/// Never longer than `width`. A bar that does not fit shrinks, then disappears; then the gaps
/// close, and the text is cut.
std::string progress_bar(const ProgressReport& progress, int width);
/// The line without a bar.
std::string progress_text(const ProgressReport& progress);

/// "2:05", "1:02:05". Rounded to seconds: below half a second it is "0:00".
std::string duration_text(double seconds);

/// Properties of an output stream's terminal.
struct Terminal {
  bool interactive = false;  // whether a line can be rewritten
  int width = 80;            // columns
};
/// `kind` is the environment variable TERM. "dumb" or an empty value means no escape sequences.
Terminal terminal_of(std::FILE* out, const std::string& kind);

class ProgressLine {
 public:
  /// In a file, a line appears every `interval` steps and at the end of each epoch.
  ProgressLine(std::FILE* out, Terminal terminal, int64_t interval);
  /// No method fails: where the stream cannot be written, a notice says so once, like redraw().
  void update(const ProgressReport& progress);
  /// Writes a permanent line above the bar.
  void say(const std::string& text);
  /// Erases the bar, so that others can write a line.
  void clear();
  /// Ends the line and leaves the bar visible.
  void finish();

 private:
  std::FILE* out_;
  Terminal terminal_;
  int64_t interval_;
  bool drawn_ = false;  // whether a bar is on the current line
};

}  // namespace wisp
