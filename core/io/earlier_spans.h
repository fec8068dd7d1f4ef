// The spans in a run's trace.json from before the run was resumed. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace wisp {

struct EarlierSpans {
  std::string events;   // as text for write_trace()
  double end_us = 0.0;  // end of the last span; 0 if there is none
};

/// The spans of steps before `step`. They include the names of workers with ranks of `workers` or
/// more, which the resumed run does not have. Empty if the file does not exist or another program
/// wrote it.
EarlierSpans read_earlier_spans(const std::string& path, int64_t step, int workers);

}  // namespace wisp
