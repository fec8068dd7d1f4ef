// Progress of a run, for a person: on a terminal one line that is rewritten, into a file a plain
// line now and then. One thread at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

namespace wisp {

struct ProgressReport {
  int64_t epoch = 1, epochs = 1;  // counted from 1
  int64_t step = 0, steps = 1;    // of the epoch
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::string metric;                                        // "accuracy 45.67 %"; empty: not shown
  double rate = 0.0;                                         // per second; 0: not shown
  std::string unit = "images";                               // of the rate
  double reduction = 0.0;                                    // dense / sent; 0: not shown
  double left_s = std::numeric_limits<double>::quiet_NaN();  // of the run; NaN: not shown
};

/// "epoch 3/30 [====>  ] 120/390  loss 1.2345  accuracy 45.67 %  1234 images/s  276.7x  2:05 left".
/// Never longer than `width`: the bar shrinks, then goes, the gaps close, and the text is cut.
std::string progress_bar(const ProgressReport& progress, int width);
/// The same without a bar.
std::string progress_text(const ProgressReport& progress);

/// "2:05", "1:02:05"; less than a second is "0:00".
std::string duration_text(double seconds);

/// What a stream leads to.
struct Terminal {
  bool interactive = false;  // a line can be rewritten
  int width = 80;            // columns
};
/// `kind` is the environment's TERM: "dumb", or none, knows no escapes.
Terminal terminal_of(std::FILE* out, const std::string& kind);

class ProgressLine {
 public:
  /// Into a file, a line every `interval` steps and at the end of each epoch.
  ProgressLine(std::FILE* out, Terminal terminal, int64_t interval);
  /// All throw Error if the stream cannot be written, but for a terminal that was closed.
  void update(const ProgressReport& progress);
  /// A line that stays, above the bar.
  void say(const std::string& text);
  /// Takes the bar away, so that somebody else's line may follow.
  void clear();
  /// Leaves the last bar standing.
  void finish();

 private:
  void put(const std::string& text);

  std::FILE* out_;
  Terminal terminal_;
  int64_t interval_;
  bool drawn_ = false;    // a bar stands on the current line
  bool hung_up_ = false;  // the terminal is gone
};

}  // namespace wisp
